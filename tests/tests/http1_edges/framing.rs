//! Cuts, lengths, chunks and versions of one request.

use retry_tests::require;
use retry_tests::wire::Act;

use crate::row::{Row, check};

const GET: &str = "GET /edge?a=1&b=2 HTTP/1.1\r\nHost: edges\r\nAccept: */*\r\n\r\n";

fn check_all(rows: &[Row]) {
    if let Some(agent) = require::agent() {
        check(&agent, rows);
    }
}

fn post(head: &str, body: &str) -> String {
    format!("POST /edge HTTP/1.1\r\nHost: edges\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn chunked(body: &str) -> String {
    format!("POST /edge HTTP/1.1\r\nHost: edges\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn a_head_cut_anyhow_is_one_request() {
    let line = GET.find("\r\n").unwrap() + 2;
    check_all(&[
        Row::new("a head in one packet", GET),
        Row::cut("a cut in the method", GET, &[2]),
        Row::cut("a cut in the target", GET, &[10]),
        Row::cut("a cut after the request line", GET, &[line]),
        Row::cut("a cut between CR and LF", GET, &[line - 1]),
        Row::cut("a cut in the last empty line", GET, &[GET.len() - 1]),
        Row::cut("three cuts", GET, &[7, line + 3, GET.len() - 3]),
        Row::bytewise("a head byte by byte", GET),
    ]);
}

#[test]
fn a_long_head_is_one_request() {
    let long = format!("X-Long: {}\r\n", "q".repeat(9000));
    let many: String = (0..90).map(|n| format!("X-Header-{n}: {}\r\n", "v".repeat(n))).collect();
    check_all(&[
        Row::new("9 KB in one line", &post(&long, "body")),
        Row::new("90 lines", &post(&many, "body")),
        Row::cut("9 KB in three packets", &post(&long, "body"), &[3000, 6000]),
    ]);
}

#[test]
fn a_body_cut_anyhow_belongs_to_its_request() {
    let text = post("", &"b".repeat(100));
    let head = text.find("\r\n\r\n").unwrap() + 4;
    let every_7: Vec<usize> = (head..text.len()).step_by(7).collect();
    let around: Vec<usize> = (head - 3..head + 4).collect();
    check_all(&[
        Row::new("head and body in one packet", &text),
        Row::cut("the body in its own packet", &text, &[head]),
        Row::cut("a cut in the body", &text, &[head + 50]),
        Row::cut("a cut in head and body", &text, &[20, head + 50]),
        Row::cut("seven bytes at a time", &text, &every_7),
        // Few enough to leave one by one: what waits for room leaves together, and the body's first bytes count
        // for the fingerprint if they leave with the head.
        Row::cut("the bytes around the body's first one by one", &text, &around),
    ]);
}

#[test]
fn requests_of_any_size_are_one_request() {
    let sized = |count: usize| {
        let head = format!("PUT /edge HTTP/1.1\r\nHost: edges\r\nContent-Length: {count}\r\n\r\n");
        Row::new("a sized body", &head).and(Act::Fill { byte: b's', count })
    };
    check_all(&[
        Row::new("an empty body", &post("", "")),
        sized(1),
        sized(127),
        sized(65_535),
        sized(65_536),
        sized(300_000),
        sized(20_000_000),
    ]);
}

#[test]
fn chunks_cut_anyhow_are_one_request() {
    let plain = chunked("a\r\n0123456789\r\n14\r\n01234567890123456789\r\n0\r\n\r\n");
    let ornate =
        chunked("A;x=y;z=\"q\"\r\n0123456789\r\n001;e\r\n!\r\n0;last\r\nX-Trailer: 1\r\nX-More: 2\r\n\r\n");
    let body = plain.find("\r\n\r\n").unwrap() + 4;
    let every_7: Vec<usize> = (body..plain.len()).step_by(7).collect();
    let big =
        chunked(&format!("{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", 40_000, "c".repeat(40_000), 3, "end"));
    check_all(&[
        Row::new("chunks in one packet", &plain),
        Row::cut("chunks after the head", &plain, &[body]),
        Row::cut("seven bytes at a time", &plain, &every_7),
        Row::bytewise("chunks byte by byte", &plain),
        Row::new("extensions and trailers", &ornate),
        Row::bytewise("extensions and trailers byte by byte", &ornate),
        Row::new("only the last chunk", &chunked("0\r\n\r\n")),
        Row::cut("big chunks", &big, &[body, body + 10_000, body + 39_000]),
    ]);
}

#[test]
fn methods_and_versions_are_all_requests() {
    check_all(&[
        Row::new("HEAD, whose answer has no body", "HEAD /edge HTTP/1.1\r\nHost: edges\r\n\r\n"),
        Row::new("DELETE", "DELETE /edge HTTP/1.1\r\nHost: edges\r\n\r\n"),
        Row::new("OPTIONS", "OPTIONS /edge HTTP/1.1\r\nHost: edges\r\n\r\n"),
        Row::new("an extension method", "PROPFIND /edge HTTP/1.1\r\nHost: edges\r\nDepth: 1\r\n\r\n"),
        Row::new("lower-case header names", "GET /edge HTTP/1.1\r\nhost:edges\r\naccept:  */*  \r\n\r\n"),
        Row::new(
            "HTTP/1.0 kept alive",
            "GET /edge HTTP/1.0\r\nHost: edges\r\nConnection: keep-alive\r\n\r\n",
        ),
    ]);
}
