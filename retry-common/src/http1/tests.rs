//! Tables and laws of both machines, driven as the kernel side drives them: a window, carried bytes, cuts.
use super::*;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

/// One thing a stream was seen to do, at an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Head(u64),
    End(usize),
    Status(u16),
    Opaque,
}

struct Reader {
    machine: Machine,
    filter: [u64; FILTER_WORDS],
    answers: bool,
    rest: Vec<u8>,
    offset: usize,
    seen: Vec<Seen>,
    host: Vec<u8>,
}

impl Reader {
    fn new(answers: bool) -> Self {
        let mut machine = Machine::START;
        if answers {
            machine.await_answer(false);
        }
        Self {
            machine,
            filter: filter(VOLATILE),
            answers,
            rest: Vec::new(),
            offset: 0,
            seen: Vec::new(),
            host: Vec::new(),
        }
    }

    fn step(&mut self, bytes: &[u8]) -> Step {
        let mut words = [0; 4];
        for (at, word) in words.iter_mut().enumerate() {
            // Beyond the end lies whatever was there before: it must not matter.
            let byte = |i: usize| *bytes.get(at * 8 + i).unwrap_or(&0xa5);
            *word = u64::from_le_bytes(core::array::from_fn(byte));
        }
        let input = Input { words, available: bytes.len() as u32 };
        if self.answers {
            self.machine.answer_step(&input, &self.filter)
        } else {
            self.machine.request_step(&input, &self.filter)
        }
    }

    fn packet(&mut self, bytes: &[u8]) {
        let mut bytes = [core::mem::take(&mut self.rest), bytes.to_vec()].concat();
        loop {
            let step = self.step(&bytes);
            assert!(step.consumed as usize <= bytes.len(), "took more than there was");
            let taken: Vec<u8> = bytes.drain(..step.consumed as usize).collect();
            self.offset += taken.len();
            self.note(step.events, &taken);
            if step.events.has(Events::OPAQUE) || step.events.has(Events::END) && self.answers {
                return;
            }
            if step.consumed == 0 && step.events == Events::NONE {
                assert!(bytes.len() < 8, "asked for more although {} bytes were there", bytes.len());
                self.rest = bytes;
                return;
            }
        }
    }

    fn note(&mut self, events: Events, taken: &[u8]) {
        if events.has(Events::NAME) && VOLATILE.iter().any(|name| name_hash(name) == self.machine.name()) {
            self.machine.omit_line();
        }
        if events.has(Events::HOST) {
            self.host.extend(taken);
        }
        if events.has(Events::HEAD) && !self.answers {
            self.seen.push(Seen::Head(self.machine.fingerprint(7)));
        }
        if events.has(Events::STATUS) {
            self.seen.push(Seen::Status(self.machine.status()));
        }
        if events.has(Events::END) {
            self.seen.push(Seen::End(self.offset));
        }
        if events.has(Events::OPAQUE) {
            self.seen.push(Seen::Opaque);
        }
    }
}

fn read(answers: bool, packets: &[&[u8]]) -> Vec<Seen> {
    let mut reader = Reader::new(answers);
    for packet in packets {
        let ended = answers && matches!(reader.seen.last(), Some(Seen::End(_)));
        if !reader.machine.is_opaque() && !ended {
            reader.packet(packet);
        }
    }
    reader.seen
}

fn requests(text: &str) -> Vec<Seen> {
    read(false, &[text.as_bytes()])
}

fn fingerprint(text: &str) -> u64 {
    match requests(text).first() {
        Some(Seen::Head(fingerprint)) => *fingerprint,
        other => panic!("{text:?} is no request: {other:?}"),
    }
}

/// Ends of the requests in a text, and whether it became opaque.
fn ends(text: &str) -> (Vec<usize>, bool) {
    let seen = requests(text);
    let at = |seen: &Seen| if let Seen::End(at) = seen { Some(*at) } else { None };
    (seen.iter().filter_map(at).collect(), seen.contains(&Seen::Opaque))
}

const GET: &str = "GET /config?x=1 HTTP/1.1\r\nHost: a.example:8080\r\nAccept: */*\r\n\r\n";
const POST: &str = "POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world";
const CHUNKED: &str = "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n5;ext=\"a\"\r\nhello\r\nB\r\n, new world\r\n0\r\nT: 1\r\n\r\n";

#[test]
fn requests_end_where_they_end() {
    let big = format_big();
    let rows: [(&str, String, bool); 14] = [
        ("a request without a body", GET.into(), false),
        ("a body by length", POST.into(), false),
        ("chunks with extensions and a trailer", CHUNKED.into(), false),
        ("bare line feeds", "GET / HTTP/1.0\nHost: a\n\n".into(), false),
        ("empty lines before a request", std::format!("\r\n\r\n{GET}"), false),
        ("a head longer than a window", big, false),
        ("no header at all", "DELETE /x HTTP/1.0\r\n\r\n".into(), false),
        ("a length of zero", "POST / HTTP/1.1\r\nContent-Length:0\r\n\r\n".into(), false),
        ("blanks around a length", "POST / HTTP/1.1\r\nContent-Length: \t 3 \t\r\n\r\nabc".into(), false),
        (
            "a long length",
            "POST / HTTP/1.1\r\nContent-Length: 0000000000000000000000003\r\n\r\nabc".into(),
            false,
        ),
        ("names in capitals", "POST / HTTP/1.1\r\nCONTENT-LENGTH: 3\r\n\r\nabc".into(), false),
        ("no blank before the length", "POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nabc".into(), false),
        ("a length-like name", "POST / HTTP/1.1\r\nContent-Lengths: 3\r\n\r\n".into(), false),
        ("Expect", "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na".into(), false),
    ];
    for (sentence, text, opaque) in rows {
        let lead = text.len() - text.trim_start().len();
        let twice = std::format!("{text}{text}");
        let expected = std::vec![text.len(), 2 * text.len()];
        assert_eq!(ends(&twice), (expected, opaque), "{sentence} ({lead} before)");
    }
}

fn format_big() -> String {
    let cookie = "c".repeat(9_000);
    std::format!("GET / HTTP/1.1\r\nCookie: {cookie}\r\nHost: b\r\n\r\n")
}

#[test]
fn what_is_not_http1_is_left_alone() {
    let rows = [
        ("a TLS hello", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}"),
        ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("a line without a version", "GET /\r\n\r\n"),
        ("a made up version", "GET / HTTP/2.0\r\n\r\n"),
        ("lower case", "get / HTTP/1.1\r\n\r\n"),
        ("SMTP", "EHLO client.example\r\n"),
        ("Redis", "*1\r\n$4\r\nPING\r\n"),
        ("two lengths", "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
        (
            "a length and a coding",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        ),
        ("a length that is none", "POST / HTTP/1.1\r\nContent-Length: 3,3\r\n\r\nabc"),
        ("an empty length", "POST / HTTP/1.1\r\nContent-Length: \r\n\r\nabc"),
        ("a negative length", "POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\nabc"),
        ("a length in two parts", "POST / HTTP/1.1\r\nContent-Length: 1 2\r\n\r\nabc"),
        ("a length beyond reason", "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\nabc"),
        ("a coding that is not chunked", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nabc"),
        ("a folded header", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"),
        ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        ("a chunk size that is none", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        ("a chunk without its end", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc"),
        (
            "a chunk beyond reason",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        ),
    ];
    for (sentence, text) in rows {
        let (ends, opaque) = ends(text);
        assert!(opaque, "{sentence}");
        assert!(ends.is_empty(), "{sentence}: {ends:?}");
    }
}

#[test]
fn connect_counts_once_and_is_opaque_then() {
    let seen = requests("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n\u{16}\u{3}");
    assert!(matches!(seen.as_slice(), [Seen::Head(_), Seen::Opaque]), "{seen:?}");
}

#[test]
fn the_host_is_given_out() {
    let mut reader = Reader::new(false);
    reader.packet(GET.as_bytes());
    assert_eq!(reader.host, b" a.example:8080\r\n");
}

#[test]
fn fingerprints_tell_calls_apart() {
    let base = fingerprint(POST);
    let other = |sentence: &str, text: &str| assert_ne!(fingerprint(text), base, "{sentence}");
    other("method", &POST.replace("POST", "PATCH"));
    other("target", &POST.replace("/orders", "/orderz"));
    other("query", &POST.replace("/orders", "/orders?a"));
    other("host", &POST.replace("Host: a", "Host: b"));
    other("body", &POST.replace("hello", "Hello"));
    other("length", &POST.replace("11", "10"));
    other("a header", &POST.replace("\r\n\r\n", "\r\nIdempotency-Key: 1\r\n\r\n"));
    other("version", &POST.replace("HTTP/1.1", "HTTP/1.0"));

    let same = |sentence: &str, text: &str| assert_eq!(fingerprint(text), base, "{sentence}");
    same("a new trace span", &POST.replace("\r\n\r\n", "\r\ntraceparent: 00-abc-def-01\r\n\r\n"));
    same("an attempt counter", &POST.replace("\r\n\r\n", "\r\nX-Envoy-Attempt-Count: 3\r\n\r\n"));
    let reordered = "POST /orders HTTP/1.1\r\nContent-Length: 11\r\nHost: a\r\n\r\nhello world";
    same("the order of headers", reordered);
}

#[test]
fn answers_end_where_they_end() {
    let rows: [(&str, &str, &[Seen]); 10] = [
        (
            "by length",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP",
            &[Seen::Status(200), Seen::End(40)],
        ),
        ("no content", "HTTP/1.1 204 No Content\r\n\r\n", &[Seen::Status(204), Seen::End(27)]),
        (
            "no reason phrase",
            "HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n",
            &[Seen::Status(503), Seen::End(35)],
        ),
        (
            "chunked",
            "HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            &[Seen::Status(500), Seen::End(58)],
        ),
        ("until close", "HTTP/1.0 200 OK\r\n\r\nall the rest", &[Seen::Status(200)]),
        (
            "after 100 Continue",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many\r\ncontent-length:0\r\n\r\n",
            &[Seen::Status(100), Seen::Status(429), Seen::End(68)],
        ),
        (
            "after 103 with headers",
            "HTTP/1.1 103 E\r\nLink: a\r\n\r\nHTTP/1.1 304 N\r\n\r\n",
            &[Seen::Status(103), Seen::Status(304), Seen::End(45)],
        ),
        ("upgrade", "HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\nbytes", &[Seen::Status(101), Seen::Opaque]),
        ("not HTTP", "+PONG\r\nXXXX", &[Seen::Opaque]),
        ("a status that is none", "HTTP/1.1 2x0 OK\r\n\r\n", &[Seen::Opaque]),
    ];
    for (sentence, text, expected) in rows {
        assert_eq!(read(true, &[text.as_bytes()]), expected, "{sentence}");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(true, &bytes), expected, "{sentence}, byte by byte");
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    let mut reader = Reader::new(true);
    reader.machine.await_answer(true);
    reader.packet(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    assert_eq!(reader.seen, [Seen::Status(200), Seen::End(40)]);
}

#[test]
fn bulk_may_be_passed_over_but_not_its_end() {
    let mut reader = Reader::new(true);
    reader.packet(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab");
    assert!(!reader.machine.pass_over(98), "the end must be seen");
    assert!(reader.machine.pass_over(97));
    reader.packet(b"c");
    assert!(matches!(reader.seen.last(), Some(Seen::End(_))));
    assert!(!reader.machine.pass_over(1));
}

fn token() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[A-Za-z][A-Za-z0-9-]{0,40}").expect("a regex")
}

/// A well-formed request, with its body.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let header = (token(), proptest::string::string_regex("[!-~]([ -~]{0,90}[!-~])?").expect("a regex"));
    let method = proptest::string::string_regex("[A-Z]{3,9}").expect("a regex");
    let target = proptest::string::string_regex("/[!-~]{0,120}").expect("a regex");
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    (method, target, proptest::collection::vec(header, 0..8), body).prop_map(
        |(method, target, headers, body)| {
            let mut text = std::format!("{method} {target} HTTP/1.1\r\n").into_bytes();
            for (name, value) in headers {
                if header::framing(name_hash(&name)) == HeaderClass::Stable {
                    text.extend(std::format!("{name}: {value}\r\n").bytes());
                }
            }
            if !body.is_empty() {
                text.extend(std::format!("Content-Length: {}\r\n", body.len()).bytes());
            }
            text.extend(b"\r\n");
            text.extend(body);
            text
        },
    )
}

fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn any_bytes_never_panic_and_cuts_do_not_matter(
        bytes in proptest::collection::vec(any::<u8>(), 0..400), cuts: Vec<prop::sample::Index>, answers: bool,
    ) {
        let whole = read(answers, &[&bytes]);
        let parts = read(answers, &cut(&bytes, &cuts));
        prop_assert_eq!(structure(&whole), structure(&parts));
    }

    /// Bytes that are almost HTTP reach deeper than random ones.
    #[test]
    fn almost_http_never_panics_and_cuts_do_not_matter(
        text in request(), changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts: Vec<prop::sample::Index>,
    ) {
        let mut bytes = [text.clone(), text].concat();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        prop_assert_eq!(structure(&read(false, &[&bytes])), structure(&read(false, &cut(&bytes, &cuts))));
    }

    #[test]
    fn requests_are_framed_as_httparse_frames_them(text in request()) {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = parsed.parse(&text).expect("well formed").unwrap();
        let length = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length: usize = length.map_or(0, |header| String::from_utf8_lossy(header.value).parse().unwrap());
        let seen = read(false, &[&text]);
        prop_assert_eq!(structure(&seen), std::vec![Seen::Head(0), Seen::End(head + length)]);
    }

    #[test]
    fn a_request_has_one_fingerprint_however_its_head_is_cut(text in request(), cuts: Vec<prop::sample::Index>) {
        let head = text.windows(4).position(|four| four == b"\r\n\r\n").expect("an end") + 4;
        let parts = cut(&text[..head - 1], &cuts);
        let mut packets: Vec<&[u8]> = parts;
        packets.push(&text[head - 1..]);
        prop_assert_eq!(read(false, &packets), read(false, &[&text]));
    }

    #[test]
    fn a_changed_byte_in_the_line_changes_the_fingerprint(text in request(), place: prop::sample::Index) {
        let start = text.iter().position(|byte| *byte == b'/').expect("a target") + 1;
        let end = text.windows(6).position(|six| six == b" HTTP/").expect("a version");
        prop_assume!(end > start);
        let mut other = text.clone();
        let place = start + place.index(end - start);
        other[place] = if other[place] == b'x' { b'y' } else { b'x' };
        prop_assert_ne!(read(false, &[&other])[0], read(false, &[&text])[0]);
    }
}

/// What was seen without fingerprints, which may depend on whether a body's first bytes came with its head.
fn structure(seen: &[Seen]) -> Vec<Seen> {
    seen.iter().map(|seen| if let Seen::Head(_) = seen { Seen::Head(0) } else { *seen }).collect()
}
