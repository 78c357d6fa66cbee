//! Header names: which of them frame a message, and which change from attempt to attempt.
use super::word;
use crate::hash::{low_bytes, mix};

/// Words of the filter over the beginnings of header names.
pub const FILTER_WORDS: usize = 16;

/// What a header line means to the machines.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderClass {
    /// Part of the fingerprint, otherwise of no interest.
    Stable = 0,
    /// Not part of the fingerprint: it differs between attempts of one call.
    Volatile = 1,
    /// `Content-Length` (RFC 9110, 8.6).
    Length = 2,
    /// `Transfer-Encoding` (RFC 9112, 6.1).
    Coding = 3,
    /// `Expect` (RFC 9110, 10.1.1).
    Expect = 4,
    /// `Host` (RFC 9110, 7.2).
    Host = 5,
    /// `Upgrade` (RFC 9110, 7.8).
    Upgrade = 6,
}

/// Headers that usually differ between the attempts of one call: times, deadlines, trace spans, attempt
/// counters. Names that identify a call or its user (`idempotency-key`, `authorization`, `cookie`) are not
/// among them: without those, two users' equal requests would look like a repetition.
pub const VOLATILE: [&str; 22] = [
    "amz-sdk-request",
    "b3",
    "date",
    "grpc-timeout",
    "l5d-timeout",
    "retry-attempt",
    "sentry-trace",
    "traceparent",
    "tracestate",
    "uber-trace-id",
    "x-amz-date",
    "x-amzn-trace-id",
    "x-b3-parentspanid",
    "x-b3-spanid",
    "x-b3-traceid",
    "x-cloud-trace-context",
    "x-datadog-parent-id",
    "x-deadline-at",
    "x-envoy-attempt-count",
    "x-envoy-expected-rq-timeout-ms",
    "x-request-deadline",
    "x-retry-count",
];

const FRAMING: [&str; 5] = ["content-length", "transfer-encoding", "expect", "host", "upgrade"];

pub(super) const NAME_SEED: u64 = 0x6e61_6d65;

/// Takes the first `count` (0..=8) bytes of a word into the hash of a header's name.
#[inline(always)]
pub(super) const fn mix_name(hash: u64, text: u64, count: u32) -> u64 {
    mix(hash, low_bytes(word::fold(text), count))
}

/// Hash of a header's name, whatever its case; the key of the list of volatile names.
pub const fn name_hash(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let (mut hash, mut at) = (NAME_SEED, 0);
    loop {
        let (_, rest) = bytes.split_at(at);
        let count = if rest.len() < 8 { rest.len() as u32 } else { 8 };
        hash = mix_name(hash, word::of(rest), count);
        // A name whose length is a multiple of eight ends in an empty word, as it does on the wire.
        if count < 8 {
            return hash;
        }
        at += 8;
    }
}

/// The class of the names that frame a message; stable for every other.
#[inline(always)]
pub(super) const fn framing(hash: u64) -> HeaderClass {
    const LENGTH: u64 = name_hash("content-length");
    const CODING: u64 = name_hash("transfer-encoding");
    const EXPECT: u64 = name_hash("expect");
    const HOST: u64 = name_hash("host");
    const UPGRADE: u64 = name_hash("upgrade");
    match hash {
        LENGTH => HeaderClass::Length,
        CODING => HeaderClass::Coding,
        EXPECT => HeaderClass::Expect,
        HOST => HeaderClass::Host,
        UPGRADE => HeaderClass::Upgrade,
        _ => HeaderClass::Stable,
    }
}

/// Place of a line in the filter, by the first eight bytes of its name (fewer where the colon comes before).
#[inline(always)]
const fn place(first: u64) -> (usize, u32) {
    let hash = mix(NAME_SEED, first) >> 20;
    ((hash >> 6) as usize % FILTER_WORDS, (hash & 63) as u32)
}

/// Whether the name that begins with this word (of the line) needs a closer look.
#[inline(always)]
pub(super) fn may_matter(filter: &[u64; FILTER_WORDS], text: u64) -> bool {
    let colon = word::find(text, b':');
    let count = if colon == 0 { 8 } else { word::first(colon) };
    let (at, bit) = place(low_bytes(word::fold(text), count));
    (filter[at] >> bit) & 1 == 1
}

/// The filter for the framing names and these volatile ones.
pub fn filter<'a>(volatile: impl IntoIterator<Item = &'a str>) -> [u64; FILTER_WORDS] {
    let mut filter = [0; FILTER_WORDS];
    for name in FRAMING.into_iter().chain(volatile) {
        let (at, bit) = place(low_bytes(word::fold(word::of(name.as_bytes())), name.len().min(8) as u32));
        filter[at] |= 1 << bit;
    }
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_alike_in_any_case() {
        assert_eq!(name_hash("Content-Length"), name_hash("content-length"));
        assert_ne!(name_hash("content-length"), name_hash("content-lengths"));
        assert_ne!(name_hash("x-b3-spa"), name_hash("x-b3-spanid"));
        assert_eq!(framing(name_hash("TRANSFER-ENCODING")), HeaderClass::Coding);
        assert_eq!(framing(name_hash("accept")), HeaderClass::Stable);
    }

    #[test]
    fn every_listed_name_passes_the_filter() {
        let filter = filter(VOLATILE);
        for name in VOLATILE.into_iter().chain(FRAMING) {
            let line = std::format!("{}: some value", name.to_uppercase());
            assert!(may_matter(&filter, word::of(line.as_bytes())), "{name}");
        }
        let set: u32 = filter.iter().map(|word| word.count_ones()).sum();
        assert!(set <= 32, "{set} of 1024 bits: other names rarely pass");
    }
}
