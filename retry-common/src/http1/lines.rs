//! What both directions share: lines, header values, chunks and bodies.
use super::header::{self, FILTER_WORDS, HeaderClass, NAME_SEED, mix_name};
use super::word::{digits, find, first, fold, of, tail};
use super::{Events, Input, MOST_LEFT, Machine, Step, fact, state};
use crate::hash::{low_bytes, mix};

const LF: u8 = b'\n';
const CR: u8 = b'\r';

/// Outcome of reading on in a line.
pub(super) struct Run {
    /// Bytes taken, the line feed included.
    pub consumed: u32,
    /// Whether the line ended.
    pub ended: bool,
}

impl Input {
    /// Word `at`, cut to what is available, with the number of its bytes.
    #[inline(always)]
    pub(super) fn word(&self, at: usize) -> (u64, u32) {
        let rest = self.available.saturating_sub(at as u32 * 8);
        if rest >= 8 { (self.words[at], 8) } else { (low_bytes(self.words[at], rest), rest) }
    }

    /// The next byte; there is one.
    #[inline(always)]
    pub(super) fn byte(&self) -> u8 {
        self.words[0] as u8
    }
}

impl Machine {
    /// Begins a line whose words are taken into a hash that starts with `seed`.
    #[inline(always)]
    pub(super) fn begin_line(&mut self, next: u8, seed: u64) {
        self.state = next;
        self.hash = seed;
        self.previous = 0;
    }

    /// Reads on in the current line, at most `words` words. At its end `previous` holds the last eight bytes
    /// before the line feed.
    #[inline(always)]
    pub(super) fn run(&mut self, input: &Input, words: usize) -> Run {
        let (mut hash, mut previous, mut at) = (self.hash, self.previous, 0);
        let mut ended = false;
        let mut consumed = 0;
        while at < words {
            let (text, count) = input.word(at);
            let feed = find(text, LF);
            if feed != 0 {
                let length = first(feed);
                hash = mix(hash, low_bytes(text, length));
                previous = tail(previous, low_bytes(text, length), length);
                consumed += length + 1;
                ended = true;
                break;
            }
            if count < 8 {
                break;
            }
            hash = mix(hash, text);
            previous = text;
            consumed += 8;
            at += 1;
        }
        self.hash = hash;
        self.previous = previous;
        Run { consumed, ended }
    }

    /// A line of a head begins: its end, or a header. Nothing is taken unless the head ends (then `Ok`).
    #[inline(always)]
    pub(super) fn begin_header(
        &mut self,
        input: &Input,
        filter: &[u64; FILTER_WORDS],
        plain: u8,
    ) -> HeaderStart {
        let (text, count) = input.word(0);
        if text as u8 == LF {
            return HeaderStart::HeadEnds(1);
        }
        if text as u16 == u16::from_le_bytes([CR, LF]) {
            return HeaderStart::HeadEnds(2);
        }
        if count < 8 && find(text, LF) == 0 {
            return HeaderStart::NeedsMore;
        }
        // A line that goes on from the one before (obs-fold): RFC 9112, 5.2 lets a server reject it.
        if matches!(text as u8, b' ' | b'\t' | CR) {
            return HeaderStart::Malformed;
        }
        if header::may_matter(filter, text) {
            self.begin_line(state::NAME, NAME_SEED);
        } else {
            self.begin_line(plain, NAME_SEED);
        }
        HeaderStart::Begun
    }

    /// Reads on in a header's name; at its colon the machine goes over to the value. `plain`: state for values
    /// of no interest.
    #[inline(always)]
    pub(super) fn name_step(&mut self, input: &Input, plain: u8) -> Step {
        let (text, count) = input.word(0);
        let colon = find(text, b':');
        let length = if colon == 0 { 8 } else { first(colon) };
        if find(low_bytes(text, length), LF) != 0 {
            return self.give_up(Events::MALFORMED);
        }
        if colon == 0 {
            if count < 8 {
                return Step::MORE;
            }
            self.hash = mix_name(self.hash, text, 8);
            return Step::took(8);
        }
        self.hash = mix_name(self.hash, text, length);
        self.begin_value(header::framing(self.hash), plain, length + 1)
    }

    #[inline(always)]
    fn begin_value(&mut self, class: HeaderClass, plain: u8, consumed: u32) -> Step {
        self.previous = 0;
        self.state = plain;
        let mut events = Events::NONE;
        match class {
            HeaderClass::Length => {
                if self.facts & fact::HAS_LENGTH != 0 {
                    return self.give_up(Events::MALFORMED);
                }
                self.state = state::LENGTH;
                self.count = 0;
                self.left = 0;
            }
            HeaderClass::Coding => self.state = state::CODING,
            HeaderClass::Expect => self.facts |= fact::EXPECT,
            HeaderClass::Upgrade => self.facts |= fact::UPGRADE,
            HeaderClass::Host => self.state = state::HOST,
            HeaderClass::Stable | HeaderClass::Volatile => events = Events::NAME,
        }
        Step::found(consumed, events)
    }

    /// Reads on in the value of `Content-Length`: the whole of a short one at once, a long one by bytes.
    #[inline(always)]
    pub(super) fn length_step(&mut self, input: &Input) -> Step {
        let (text, count) = input.word(0);
        let feed = find(text, LF);
        if self.count == 0
            && feed != 0
            && let Some(step) = self.short_length(text, first(feed))
        {
            return step;
        }
        if count == 0 {
            return Step::MORE;
        }
        match text as u8 {
            digit @ b'0'..=b'9' if self.facts & fact::LENGTH_ENDED == 0 && self.left < MOST_LEFT => {
                self.left = self.left * 10 + (digit - b'0') as u64;
                self.count = 1;
            }
            b' ' | b'\t' => {
                if self.count != 0 {
                    self.facts |= fact::LENGTH_ENDED;
                }
            }
            CR => self.facts |= fact::LENGTH_ENDED,
            LF if self.count != 0 => self.end_length(),
            _ => return self.give_up(Events::MALFORMED),
        }
        Step::took(1)
    }

    /// ` 1234\r\n` in one word, `feed` being the place of the line feed.
    #[inline(always)]
    fn short_length(&mut self, text: u64, feed: u32) -> Option<Step> {
        let blank = (text as u8 == b' ') as u32;
        let text = text >> (blank * 8);
        let mut length = feed.saturating_sub(blank);
        if length != 0 && (text >> ((length - 1) * 8)) as u8 == CR {
            length -= 1;
        }
        if length == 0 {
            return None;
        }
        self.left = digits(text, length)?;
        self.end_length();
        Some(Step::took(feed + 1))
    }

    #[inline(always)]
    fn end_length(&mut self) {
        self.facts |= fact::HAS_LENGTH;
        self.state = state::HEADER;
    }

    /// A `Transfer-Encoding` line ended: its last coding must be `chunked` (RFC 9112, 6.3).
    #[inline(always)]
    pub(super) fn end_coding(&mut self, consumed: u32) -> Step {
        const CHUNKED: u64 = of(b"chunked");
        let last = if self.previous >> 56 == CR as u64 { self.previous << 8 } else { self.previous };
        if fold(last >> 8) & low_bytes(u64::MAX, 7) != CHUNKED {
            return self.give_up(Events::MALFORMED);
        }
        self.facts |= fact::CHUNKED;
        self.state = state::HEADER;
        Step::took(consumed)
    }

    /// Takes as much of a body or chunk as there is.
    #[inline(always)]
    pub(super) fn bulk_step(&mut self, available: u32) -> Step {
        if self.state == state::UNTIL_CLOSE {
            return Step::took(available);
        }
        if self.left > available as u64 {
            self.left -= available as u64;
            return Step::took(available);
        }
        let consumed = self.left as u32;
        self.left = 0;
        if self.state == state::BODY {
            return Step::found(consumed, Events::END);
        }
        self.state = state::CHUNK_END;
        Step::took(consumed)
    }

    /// Begins the size line of a chunk.
    #[inline(always)]
    pub(super) fn begin_chunk(&mut self) {
        self.state = state::CHUNK_SIZE;
        self.left = 0;
        self.count = 0;
    }

    /// One byte of a chunk's size line (RFC 9112, 7.1).
    #[inline(always)]
    pub(super) fn chunk_size_step(&mut self, byte: u8) -> Step {
        match byte {
            b'0'..=b'9' => self.take_hex(byte - b'0'),
            b'a'..=b'f' => self.take_hex(byte - b'a' + 10),
            b'A'..=b'F' => self.take_hex(byte - b'A' + 10),
            LF if self.count != 0 => self.end_chunk_size(),
            b';' | b' ' | b'\t' | CR if self.count != 0 => self.begin_line(state::CHUNK_EXT, 0),
            _ => return self.give_up(Events::MALFORMED),
        }
        if self.count > 14 {
            return self.give_up(Events::MALFORMED);
        }
        Step::took(1)
    }

    #[inline(always)]
    fn take_hex(&mut self, digit: u8) {
        self.left = (self.left << 4) | digit as u64;
        self.count += 1;
    }

    #[inline(always)]
    pub(super) fn end_chunk_size(&mut self) {
        self.state = if self.left == 0 { state::TRAILER } else { state::CHUNK_DATA };
    }

    /// One byte of the line end behind a chunk.
    #[inline(always)]
    pub(super) fn chunk_end_step(&mut self, byte: u8) -> Step {
        match byte {
            CR => {}
            LF => self.begin_chunk(),
            _ => return self.give_up(Events::MALFORMED),
        }
        Step::took(1)
    }

    /// A line of the trailer section begins, or the message ends.
    #[inline(always)]
    pub(super) fn trailer_step(&mut self, input: &Input) -> Step {
        let (text, count) = input.word(0);
        if text as u8 == LF {
            return Step::found(1, Events::END);
        }
        if text as u16 == u16::from_le_bytes([CR, LF]) {
            return Step::found(2, Events::END);
        }
        if count < 2 {
            return Step::MORE;
        }
        self.begin_line(state::TRAILER_LINE, 0);
        Step::took(1)
    }
}

/// What begins at the start of a line of a head.
pub(super) enum HeaderStart {
    /// A header; the state says how its line is read.
    Begun,
    /// The head ends with so many bytes.
    HeadEnds(u32),
    /// Too few bytes to say.
    NeedsMore,
    /// Neither.
    Malformed,
}
