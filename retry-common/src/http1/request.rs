//! The machine of the client's direction.
use super::header::FILTER_WORDS;
use super::lines::HeaderStart;
use super::word::{find, of};
use super::{BODY_HEAD_LEN, Events, Input, Machine, STEP_LEN, Step, fact, state};
use crate::hash::{low_bytes, mix};

const LINE_SEED: u64 = 0x6c69_6e65;

impl Machine {
    /// Reads on in a request. `filter`: [`super::filter`] of the volatile names.
    #[inline(always)]
    pub fn request_step(&mut self, input: &Input, filter: &[u64; FILTER_WORDS]) -> Step {
        if input.available == 0 {
            return Step::MORE;
        }
        match self.state {
            state::START => {
                if let Some(step) = self.begin_request(input) {
                    return step;
                }
            }
            state::HEADER => match self.begin_header(input, filter, state::PLAIN) {
                HeaderStart::Begun => {}
                HeaderStart::HeadEnds(consumed) => return self.end_head(input.available, consumed),
                HeaderStart::NeedsMore => return Step::MORE,
                HeaderStart::Malformed => return self.give_up(Events::MALFORMED),
            },
            state::LENGTH => return self.length_step(input),
            state::BODY_HEAD => return self.body_head_step(input),
            state::BODY | state::CHUNK_DATA => {
                let step = self.bulk_step(input.available);
                return self.end_of(step);
            }
            state::CHUNK_SIZE => return self.chunk_size_step(input.byte()),
            state::CHUNK_END => return self.chunk_end_step(input.byte()),
            state::TRAILER => {
                let step = self.trailer_step(input);
                return self.end_of(step);
            }
            state::OPAQUE => return Step::found(input.available, Events::OPAQUE),
            _ => {}
        }
        if self.state == state::NAME {
            return self.name_step(input, state::PLAIN);
        }
        self.request_line_step(input)
    }

    /// Behind a complete request the next one begins. What was learnt of this one can still be asked for:
    /// its first byte restarts the machine.
    #[inline(always)]
    fn end_of(&mut self, step: Step) -> Step {
        if step.events.has(Events::END) {
            self.state = state::START;
        }
        step
    }

    /// Skips empty lines (RFC 9112, 2.2), then looks whether this can be a request at all; if so, its line
    /// begins and nothing was taken.
    #[inline(always)]
    fn begin_request(&mut self, input: &Input) -> Option<Step> {
        let (text, count) = input.word(0);
        match text as u8 {
            b'\r' | b'\n' => return Some(Step::took(1)),
            b'A'..=b'Z' => {}
            _ => return Some(self.give_up(Events::NONE)),
        }
        if count < 8 && find(text, b'\n') == 0 {
            return Some(Step::MORE);
        }
        // The preface of HTTP/2 (RFC 9113, 3.4).
        if low_bytes(text, 4) == of(b"PRI ") {
            return Some(self.give_up(Events::NONE));
        }
        self.restart();
        if low_bytes(text, 5) == of(b"HEAD ") {
            self.facts |= fact::HEAD;
        }
        if text == of(b"CONNECT ") {
            self.facts |= fact::CONNECT;
        }
        self.begin_line(state::LINE, LINE_SEED);
        None
    }

    /// Reads on in a line of any kind and does what its end asks for.
    #[inline(always)]
    fn request_line_step(&mut self, input: &Input) -> Step {
        // The caller stores the value of Host, one word at a time.
        let words = if self.state == state::HOST { 1 } else { 4 };
        let run = self.run(input, words);
        let events = if self.state == state::HOST && run.consumed != 0 { Events::HOST } else { Events::NONE };
        if !run.ended {
            return Step::found(run.consumed, events);
        }
        match self.state {
            state::LINE => {
                if !is_http1(self.previous) {
                    return self.give_up(Events::NONE);
                }
                self.take_line();
            }
            state::HOST => {
                if self.facts & fact::HAS_HOST != 0 {
                    return self.give_up(Events::MALFORMED);
                }
                self.facts |= fact::HAS_HOST;
                self.take_line();
            }
            state::CODING => return self.end_coding(run.consumed),
            state::CHUNK_EXT => self.end_chunk_size(),
            state::TRAILER_LINE => self.state = state::TRAILER,
            state::SKIP => self.state = state::HEADER,
            _ => self.take_line(),
        }
        Step::found(run.consumed, events)
    }

    /// Adds the line that just ended to the fingerprint.
    #[inline(always)]
    fn take_line(&mut self) {
        self.lines = self.lines.wrapping_add(self.hash);
        self.state = state::HEADER;
    }

    /// The head is complete: what follows, and is the fingerprint final?
    #[inline(always)]
    fn end_head(&mut self, available: u32, consumed: u32) -> Step {
        if self.is_ambiguous() {
            return self.give_up(Events::MALFORMED);
        }
        if self.facts & fact::CONNECT != 0 {
            self.state = state::OPAQUE;
            return Step::found(consumed, Events::HEAD.and(Events::OPAQUE).and(Events::UPGRADED));
        }
        if self.facts & fact::CHUNKED != 0 {
            self.begin_chunk();
            return Step::found(consumed, Events::HEAD);
        }
        if self.left == 0 {
            self.state = state::START;
            return Step::found(consumed, Events::HEAD.and(Events::END));
        }
        self.lines = mix(self.lines, self.left);
        if (available - consumed) as u64 >= self.left.min(BODY_HEAD_LEN) {
            self.state = state::BODY_HEAD;
            return Step::took(consumed);
        }
        self.state = state::BODY;
        Step::found(consumed, Events::HEAD)
    }

    /// Takes the first bytes of the body into the fingerprint; all that count are there.
    #[inline(always)]
    fn body_head_step(&mut self, input: &Input) -> Step {
        let count = if self.left < STEP_LEN as u64 { self.left as u32 } else { STEP_LEN };
        let (mut hash, mut at) = (self.lines, 0);
        while at < 4 {
            let rest = count.saturating_sub(at as u32 * 8);
            hash = mix(hash, low_bytes(input.words[at], rest));
            at += 1;
        }
        self.lines = hash;
        self.left -= count as u64;
        if self.left == 0 {
            self.state = state::START;
            return Step::found(count, Events::HEAD.and(Events::END));
        }
        self.state = state::BODY;
        Step::found(count, Events::HEAD)
    }
}

/// Whether a request line ends in `HTTP/1.x`, with or without a carriage return.
#[inline(always)]
const fn is_http1(tail: u64) -> bool {
    const LONG: u64 = of(b"TTP/1.\0\r");
    const SHORT: u64 = of(b"HTTP/1.");
    const MINOR: u64 = 0xff << 48;
    let digit = if tail >> 56 == b'\r' as u64 { (tail >> 48) as u8 } else { (tail >> 56) as u8 };
    (tail & !MINOR == LONG || tail & !(0xff << 56) == SHORT) && digit.is_ascii_digit()
}
