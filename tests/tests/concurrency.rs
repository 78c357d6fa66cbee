//! Many threads and processes on one edge: budgets are exact, never one retry too many.

use std::process::Command;

use retry_tests::agent::{Agent, Edge};
use retry_tests::origin::{Origin, Reply};
use retry_tests::require;
use serde_json::Value;

const PROCESSES: u64 = 2;
const THREADS: u64 = 12;
const CALLS: u64 = 25;
const ATTEMPTS: u64 = 3;
const ORIGINALS: u64 = PROCESSES * THREADS * CALLS;
const RETRIES: u64 = ORIGINALS * (ATTEMPTS - 1);

/// Every process has all the threads.
fn hammers(origin: &Origin, prefix: impl Fn(u64) -> String) -> Command {
    let hammer = require::own_program("hammer");
    let one = |process| {
        let target = prefix(process);
        format!("{} {} {THREADS} {CALLS} {ATTEMPTS} {target} &", hammer.display(), origin.address())
    };
    let line: String = (0..PROCESSES).map(one).collect();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{line} wait")]);
    command
}

/// An outage under load; gives the edge and the number of requests at the server.
fn outage(agent: &Agent, budget: &str, path: &str, prefix: impl Fn(u64) -> String) -> (Edge, u64) {
    let origin = Origin::start();
    origin.plan(path, Reply::status(503));
    let finished = agent.enforce(budget).run_well(&hammers(&origin, prefix));
    let said: Vec<Value> =
        finished.ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said.len() as u64, PROCESSES, "{:?}", finished.ended);
    let sum = |key: &str| said.iter().map(|line| line[key].as_u64().unwrap()).sum::<u64>();
    assert!(said.iter().all(|line| line["broken"].as_array().unwrap().is_empty()), "{said:#?}");
    let edge = finished.edge(origin.address()).clone();
    let arrived = origin.requests().len() as u64;
    assert_eq!(edge.attempts, sum("sent"), "{edge:#?}");
    assert_eq!(edge.denied, sum("denied"), "{edge:#?}");
    assert_eq!(edge.attempts - edge.denied, arrived, "{edge:#?}");
    origin.wait_for_ends();
    assert_eq!(origin.stray_bytes(), 0);
    (edge, arrived)
}

fn distinct(process: u64) -> String {
    format!("/distinct?{process}=")
}

#[test]
fn a_token_pool_gives_exactly_its_tokens() {
    let Some(agent) = require::agent() else { return };
    let (edge, arrived) = outage(&agent, "token_pool=40,refill=1/s", "/distinct", distinct);
    assert_eq!((edge.calls, edge.all_retries()), (ORIGINALS, RETRIES), "{edge:#?}");
    assert_eq!(arrived, ORIGINALS + 40);
}

#[test]
fn a_share_is_never_exceeded_and_nearly_used_up() {
    let Some(agent) = require::agent() else { return };
    let (edge, arrived) = outage(&agent, "share=10%,window=60s", "/distinct", distinct);
    assert_eq!((edge.calls, edge.all_retries()), (ORIGINALS, RETRIES), "{edge:#?}");
    let passed = arrived - ORIGINALS;
    assert!(passed <= ORIGINALS / 10, "{passed} retries of {ORIGINALS} originals passed");
    assert!(passed >= ORIGINALS / 10 - PROCESSES * THREADS, "only {passed} of {ORIGINALS} originals passed");
}

#[test]
fn without_a_budget_every_retry_is_denied() {
    let Some(agent) = require::agent() else { return };
    let (edge, arrived) = outage(&agent, "none", "/distinct", distinct);
    assert_eq!((edge.calls, edge.denied, arrived), (ORIGINALS, RETRIES, ORIGINALS), "{edge:#?}");
}

#[test]
fn one_request_sent_by_all_is_never_explained_by_more_failures_than_there_were() {
    let Some(agent) = require::agent() else { return };
    let (edge, arrived) = outage(&agent, "token_pool=40,refill=1/s", "/same", |_| "/same".to_owned());
    assert_eq!(arrived, edge.calls + 40, "{edge:#?}");
    assert!(edge.all_retries() <= edge.failures_by("status_503") + edge.denied, "{edge:#?}");
}
