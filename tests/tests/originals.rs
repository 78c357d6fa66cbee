//! First attempts are never denied, whatever the budget and however bad the outage.

use retry_tests::agent::Edge;
use retry_tests::client::{Client, Kind};
use retry_tests::origin::{Origin, Reply};
use retry_tests::require;

const CALLS: u64 = 120;
const ATTEMPTS: u64 = 3;
const RETRIES: u64 = CALLS * (ATTEMPTS - 1);

/// Distinct calls to a dependency that fails everything; gives the edge and how many requests the server saw.
fn outage(budget: &str) -> Option<(Edge, u64)> {
    let agent = require::agent()?;
    let origin = Origin::start();
    let paths: Vec<String> = (0..CALLS).map(|n| format!("/call-{n}-of-an-outage")).collect();
    let mut calls = Vec::new();
    for path in &paths {
        origin.plan(path, Reply::status(503));
        calls.push((Kind::Get, origin.url(path)));
    }
    let finished = agent.enforce(budget).run_well(&Client::Go.command(ATTEMPTS, &calls));
    for path in &paths {
        assert!(!origin.requests_to(path).is_empty(), "{budget}: the first attempt of {path} did not arrive");
    }
    let edge = finished.edge(origin.address()).clone();
    let arrived = origin.requests().len() as u64;
    assert_eq!(edge.calls, CALLS, "{budget}: {edge:#?}");
    assert_eq!(edge.attempts, CALLS * ATTEMPTS, "{budget}: {edge:#?}");
    assert_eq!(edge.denied, CALLS * ATTEMPTS - arrived, "{budget}: {edge:#?}");
    Some((edge, arrived))
}

#[test]
fn none_lets_first_attempts_pass_and_nothing_else() {
    if let Some((edge, arrived)) = outage("none") {
        assert_eq!((arrived, edge.denied), (CALLS, RETRIES));
    }
}

#[test]
fn share_lets_first_attempts_pass_and_a_tenth() {
    if let Some((_, arrived)) = outage("share=10%,window=60s") {
        assert_eq!(arrived, CALLS + CALLS / 10);
    }
}

#[test]
fn share_with_a_floor_lets_first_attempts_pass_and_the_floor_with_a_tenth() {
    if let Some((_, arrived)) = outage("share=10%,window=60s,floor=7") {
        assert_eq!(arrived, CALLS + CALLS / 10 + 7);
    }
}

#[test]
fn token_pool_lets_first_attempts_pass_and_its_tokens() {
    if let Some((_, arrived)) = outage("token_pool=25,refill=1/s") {
        assert_eq!(arrived, CALLS + 25, "the pool refills on success only");
    }
}

#[test]
fn unlimited_lets_everything_pass() {
    if let Some((edge, arrived)) = outage("unlimited") {
        assert_eq!((arrived, edge.denied), (CALLS + RETRIES, 0));
    }
}
