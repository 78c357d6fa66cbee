//! Random requests in random pieces: every answer is the right one, in order, whoever gives it, and the server sees
//! exactly the requests that it answers.

use std::process::Command;

use retry_tests::agent::Exec;
use retry_tests::origin::{Origin, Reply};
use retry_tests::require;
use serde_json::Value;

const CONNECTIONS: u32 = 80;

/// Gives the number of denials.
fn fuzz(exec: &Exec, seed: u32) -> u64 {
    let origin = Origin::start();
    origin.plan("/f", Reply::status(503));
    let mut command = Command::new(require::own_program("fuzzer"));
    command.args([&*origin.address().to_string(), &seed.to_string(), &CONNECTIONS.to_string()]);
    let finished = exec.run_well(&command);
    let said: Value = serde_json::from_str(&finished.ended.stdout).unwrap();
    assert_eq!(said["bad"].as_array().unwrap().len(), 0, "seed {seed}: {said:#?}");
    let (served, denied) = (said["served"].as_u64().unwrap(), said["denied"].as_u64().unwrap());
    let edge = finished.edge(origin.address());
    assert_eq!(edge.denied, denied, "seed {seed}: {edge:#?}");
    assert_eq!(origin.requests().len() as u64, served, "seed {seed}");
    assert_eq!(edge.attempts, served + denied, "seed {seed}: {edge:#?}");
    assert_eq!(edge.opaque, 0, "seed {seed}: {edge:#?}");
    denied
}

#[test]
fn every_answer_is_right_while_retries_are_denied() {
    let Some(agent) = require::agent() else { return };
    let denied: u64 = (1..=4).map(|seed| fuzz(&agent.enforce("none"), seed)).sum();
    // Most connections are pipelined at some time, and nothing is denied on them from then on.
    assert!(denied > 50, "only {denied} denials: the requests are not the ones this test is about");
}

#[test]
fn every_answer_is_right_while_retries_are_observed() {
    let Some(agent) = require::agent() else { return };
    let denied: u64 = (5..=6).map(|seed| fuzz(&agent.observe(), seed)).sum();
    assert_eq!(denied, 0);
}
