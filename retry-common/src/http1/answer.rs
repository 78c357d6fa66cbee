//! The machine of the server's direction.
use super::header::FILTER_WORDS;
use super::lines::HeaderStart;
use super::word::of;
use super::{Events, Input, Machine, Step, fact, state};
use crate::hash::low_bytes;

impl Machine {
    /// A machine that reads the answer to a request; one to HEAD has no body.
    #[inline(always)]
    pub fn await_answer(&mut self, to_head: bool) {
        self.restart();
        self.status = 0;
        if to_head {
            self.facts = fact::HEAD;
        }
    }

    /// Reads on in an answer. `filter`: as for [`Machine::request_step`]; only the framing names matter.
    #[inline(always)]
    pub fn answer_step(&mut self, input: &Input, filter: &[u64; FILTER_WORDS]) -> Step {
        if input.available == 0 {
            return Step::MORE;
        }
        match self.state {
            state::START => return self.begin_answer(input),
            state::STATUS => return self.status_step(input),
            state::HEADER => match self.begin_header(input, filter, state::SKIP) {
                HeaderStart::Begun => {}
                HeaderStart::HeadEnds(consumed) => return self.end_answer_head(consumed),
                HeaderStart::NeedsMore => return Step::MORE,
                HeaderStart::Malformed => return self.give_up(Events::MALFORMED),
            },
            state::LENGTH => return self.length_step(input),
            state::BODY | state::CHUNK_DATA | state::UNTIL_CLOSE => return self.bulk_step(input.available),
            state::CHUNK_SIZE => return self.chunk_size_step(input.byte()),
            state::CHUNK_END => return self.chunk_end_step(input.byte()),
            state::TRAILER => return self.trailer_step(input),
            state::OPAQUE => return Step::found(input.available, Events::OPAQUE),
            _ => {}
        }
        if self.state == state::NAME {
            let step = self.name_step(input, state::SKIP);
            // No header of an answer is volatile.
            return if step.events == Events::NAME { Step::took(step.consumed) } else { step };
        }
        let run = self.run(input, 4);
        if run.ended {
            match self.state {
                state::CODING => return self.end_coding(run.consumed),
                state::CHUNK_EXT => self.end_chunk_size(),
                state::TRAILER_LINE => self.state = state::TRAILER,
                _ => self.state = state::HEADER,
            }
        }
        Step::took(run.consumed)
    }

    #[inline(always)]
    fn begin_answer(&mut self, input: &Input) -> Step {
        let (text, count) = input.word(0);
        if count < 8 && low_bytes(of(b"HTTP/1."), count) == low_bytes(text, count) {
            return Step::MORE;
        }
        if low_bytes(text, 7) != of(b"HTTP/1.") {
            return self.give_up(Events::MALFORMED);
        }
        self.state = state::STATUS;
        Step::took(8)
    }

    /// ` 503` behind the version (RFC 9112, 4).
    #[inline(always)]
    fn status_step(&mut self, input: &Input) -> Step {
        let (text, count) = input.word(0);
        if count < 4 {
            return Step::MORE;
        }
        let digits = (text >> 8) as u32 & 0x00ff_ffff;
        let values = digits.wrapping_sub(0x0030_3030);
        let (hundreds, tens, ones) = (values & 0xff, (values >> 8) & 0xff, (values >> 16) & 0xff);
        if text as u8 != b' ' || hundreds > 9 || tens > 9 || ones > 9 {
            return self.give_up(Events::MALFORMED);
        }
        self.status = (hundreds * 100 + tens * 10 + ones) as u16;
        self.begin_line(state::SKIP, 0);
        Step::found(4, Events::STATUS)
    }

    /// The head is complete: which body follows (RFC 9112, 6.3)?
    #[inline(always)]
    fn end_answer_head(&mut self, consumed: u32) -> Step {
        let to_head = self.facts & fact::HEAD != 0;
        match self.status {
            101 => {
                self.state = state::OPAQUE;
                return Step::found(consumed, Events::HEAD.and(Events::OPAQUE).and(Events::UPGRADED));
            }
            // The answer proper is still to come.
            100..=199 => {
                self.await_answer(to_head);
                return Step::took(consumed);
            }
            _ => {}
        }
        if self.is_ambiguous() {
            return self.give_up(Events::MALFORMED);
        }
        if to_head || matches!(self.status, 204 | 304) {
            return Step::found(consumed, Events::HEAD.and(Events::END));
        }
        if self.facts & fact::CHUNKED != 0 {
            self.begin_chunk();
        } else if self.facts & fact::HAS_LENGTH == 0 {
            self.state = state::UNTIL_CLOSE;
        } else if self.left == 0 {
            return Step::found(consumed, Events::HEAD.and(Events::END));
        } else {
            self.state = state::BODY;
        }
        Step::found(consumed, Events::HEAD)
    }
}
