//! Several requests on one connection, and clients that wait, half close or go away in the middle.

use retry_tests::agent::{Agent, Finished};
use retry_tests::origin::{End, Origin, Plan, Reply};
use retry_tests::require;
use retry_tests::wire::{self, Act, Saw, Script};

const EXPECT: &str = "POST /x HTTP/1.1\r\nHost: edges\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: edges\r\n\r\n")
}

fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: edges\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn failing(paths: &[&str]) -> Origin {
    let origin = Origin::start();
    for path in paths {
        origin.plan(path, Reply::status(503));
    }
    origin
}

fn deny(agent: &Agent, script: &Script) -> (Finished, Vec<Saw>) {
    let finished = agent.enforce("none").run_well(&script.command());
    let saw = wire::saw(&finished.ended.stdout);
    (finished, saw)
}

/// Status and giver of every answer.
fn answers(saw: &[Saw]) -> Vec<(u16, Option<&str>)> {
    let answers = saw.iter().filter_map(|saw| match saw {
        Saw::Answer(answer) => Some((answer.status, answer.denied_by())),
        _ => None,
    });
    answers.collect()
}

#[test]
fn pipelined_requests_are_counted_and_never_denied() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/a", "/b"]);
    let batch = get("/a") + &get("/ok") + &get("/b");
    let script = Script::to(origin.address()).exchange(&get("/a")).exchange(&get("/b"));
    let script =
        script.connect(origin.address()).send(&(get("/ok") + &batch)).answer().answer().answer().answer();
    let (finished, saw) = deny(&agent, &script);
    let expected = [(503, None), (503, None), (200, None), (503, None), (200, None), (503, None)];
    assert_eq!(answers(&saw), expected, "{saw:?}");
    assert_eq!((origin.requests().len(), origin.stray_bytes()), (6, 0));
    let edge = finished.edge(origin.address());
    assert_eq!((edge.attempts, edge.denied), (6, 0), "{edge:#?}");
}

#[test]
fn a_retry_behind_an_outstanding_answer_is_not_denied() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/a"]);
    origin.plan("/slow", Reply::status(200).after(std::time::Duration::from_millis(100)));
    let script = Script::to(origin.address()).exchange(&get("/a")).send(&get("/slow")).send(&get("/a"));
    let (finished, saw) = deny(&agent, &script.answer().answer());
    assert_eq!(answers(&saw), [(503, None), (200, None), (503, None)], "an answer was overtaken: {saw:?}");
    assert_eq!((origin.requests().len(), finished.edge(origin.address()).denied), (3, 0));
}

#[test]
fn a_retry_behind_an_unread_answer_is_answered_in_order() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/a"]);
    let script = Script::to(origin.address()).exchange(&get("/a")).send(&get("/ok")).then(Act::Readable);
    let (_, saw) = deny(&agent, &script.send(&get("/a")).answer().answer().then(Act::End));
    assert_eq!(answers(&saw), [(503, None), (200, None), (503, Some("none"))], "{saw:?}");
    assert_eq!((origin.requests().len(), origin.stray_bytes()), (2, 0));
}

#[test]
fn requests_one_after_the_other_on_one_connection_are_each_counted() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let script =
        (0..50).fold(Script::to(origin.address()), |s, n| s.exchange(&post(&format!("/{n}"), "body")));
    let finished = agent.observe().run_well(&script.command());
    let edge = finished.edge(origin.address());
    assert_eq!((edge.calls, edge.attempts, edge.connections_by("established")), (50, 50, 1), "{edge:#?}");
}

#[test]
fn a_body_that_looks_like_answers_is_not_read_as_one() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let fakes = b"\r\n\r\nHTTP/1.1 503 Fake\r\nContent-Length: 0\r\n\r\n".repeat(7000);
    origin.plan("/length", Reply::status(200).body(fakes.clone()));
    origin.plan("/chunks", Reply::status(200).body(fakes.clone()).chunked());
    let script = Script::to(origin.address()).exchange(&get("/length")).exchange(&get("/chunks"));
    let script = script.exchange(&get("/length")).exchange(&get("/chunks"));
    let (finished, saw) = deny(&agent, &script);
    assert!(saw[1..].iter().all(|saw| saw.answer().body_len == fakes.len() as u64), "{saw:?}");
    let edge = finished.edge(origin.address());
    assert_eq!((edge.attempts, edge.all_retries(), edge.failures_seen()), (4, 0, vec![]), "{edge:#?}");
}

#[test]
fn a_body_that_looks_like_requests_is_not_read_as_some() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/a"]);
    let script =
        Script::to(origin.address()).exchange(&get("/a")).exchange(&post("/b", &get("/a").repeat(500)));
    let (finished, saw) = deny(&agent, &script);
    assert_eq!(answers(&saw), [(503, None), (200, None)]);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.attempts, edge.denied, origin.requests().len()), (2, 0, 2), "{edge:#?}");
}

#[test]
fn a_client_that_waits_for_100_is_denied_instead_of_it() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/x"]);
    let first = Script::to(origin.address()).send(EXPECT).then(Act::Head).exchange("0123456789");
    let (finished, saw) = deny(&agent, &first.connect(origin.address()).send(EXPECT).answer().then(Act::End));
    assert_eq!(answers(&saw), [(503, None), (503, Some("none"))], "{saw:?}");
    assert_eq!(finished.edge(origin.address()).denied, 1);
    assert_eq!((origin.requests().len(), origin.stray_bytes()), (1, 0));
}

#[test]
fn a_client_that_does_not_wait_for_100_is_denied_with_its_body() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/x"]);
    let whole = format!("{EXPECT}0123456789");
    let first = Script::to(origin.address()).exchange(&whole);
    let (finished, saw) = deny(&agent, &first.connect(origin.address()).exchange(&whole).then(Act::End));
    assert_eq!(answers(&saw), [(503, None), (503, Some("none"))], "{saw:?}");
    assert_eq!(finished.edge(origin.address()).denied, 1);
    assert_eq!((origin.requests().len(), origin.stray_bytes()), (1, 0));
}

#[test]
fn a_denied_client_that_half_closes_still_reads_its_answer() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/x"]);
    let script = Script::to(origin.address()).exchange(&post("/x", "body")).connect(origin.address());
    let script = script.send(&post("/x", "body")).then(Act::ShutdownWrite).answer().then(Act::End);
    let (_, saw) = deny(&agent, &script);
    assert_eq!(answers(&saw), [(503, None), (503, Some("none"))], "{saw:?}");
    assert_eq!((origin.requests().len(), origin.stray_bytes()), (1, 0));
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_denied_body_harms_nobody() {
    let Some(agent) = require::agent() else { return };
    for leave in [Act::Close, Act::Reset, Act::ShutdownWrite] {
        let origin = failing(&["/x"]);
        let whole = post("/x", &"0123456789".repeat(4));
        let cut = &whole[..whole.len() - 5];
        let script = Script::to(origin.address()).exchange(&whole).connect(origin.address()).send(cut);
        let script = script.then(leave.clone()).connect(origin.address()).exchange(&get("/ok"));
        let (finished, saw) = deny(&agent, &script);
        assert_eq!(answers(&saw), [(503, None), (200, None)], "{leave:?}: {saw:?}");
        assert_eq!(finished.edge(origin.address()).denied, 1, "{leave:?}");
        origin.wait_for_ends();
        assert_eq!((origin.requests().len(), origin.stray_bytes()), (2, 0), "{leave:?}");
    }
}

#[test]
fn a_retry_on_a_connection_that_the_server_has_closed_harms_nobody() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/x"]);
    origin.plan("/last", Reply::status(200).closing());
    let script = Script::to(origin.address()).exchange(&get("/x")).exchange(&get("/last"));
    let script = script.send(&get("/x")).answer().connect(origin.address()).exchange(&get("/ok"));
    let (_, saw) = deny(&agent, &script);
    assert_eq!(saw.last().unwrap().answer().status, 200, "{saw:?}");
    assert_eq!(origin.requests_to("/ok").len(), 1);
}

#[test]
fn an_answer_until_close_ends_with_the_connection() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let body = "x".repeat(100_000);
    origin.plan("/x", Plan::times(1, Reply::raw(format!("HTTP/1.0 200 OK\r\n\r\n{body}").as_bytes())));
    let script = Script::to(origin.address()).exchange("GET /x HTTP/1.0\r\n\r\n");
    let (finished, saw) = deny(&agent, &script.connect(origin.address()).exchange("GET /x HTTP/1.0\r\n\r\n"));
    assert_eq!(saw[1].answer().body_len, 100_000);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.calls, edge.failures_seen(), edge.host.as_deref()), (2, vec![], None), "{edge:#?}");
}

#[test]
fn the_server_of_a_denied_connection_learns_of_it_by_reset() {
    let Some(agent) = require::agent() else { return };
    let origin = failing(&["/x"]);
    let script = Script::to(origin.address()).exchange(&get("/x")).exchange(&get("/x")).then(Act::End);
    let (_, saw) = deny(&agent, &script);
    assert_eq!(answers(&saw), [(503, None), (503, Some("none"))]);
    origin.wait_for_ends();
    assert_eq!(origin.connections()[0].end, End::Reset);
    assert_eq!(origin.stray_bytes(), 0);
}
