//! Without the agent every client makes each attempt it is told to, and the server sees them all. If one of them
//! gave up early, the tests with the agent would prove nothing.

use retry_tests::client::{self, Client};
use retry_tests::origin::{Origin, Plan, Reply};
use retry_tests::{process, require};

fn check(client: Client) {
    if require::agent().is_none() {
        return;
    }
    let origin = Origin::start();
    let attempts = client.attempts();
    let times = usize::try_from(attempts - 1).unwrap();
    let mut calls = Vec::new();
    for kind in client.kinds() {
        let path = format!("/{}", kind.name());
        origin.plan(&path, Plan::times(times, Reply::status(503)));
        calls.push((*kind, origin.url(&path)));
    }
    let ended = process::run(&mut client.command(attempts, &calls));
    ended.assert_success();
    for (kind, said) in client.kinds().iter().zip(client::said(&ended.stdout)) {
        assert_eq!((said.status, said.error), (Some(200), None), "{client:?} {kind:?}");
        let path = format!("/{}", kind.name());
        let seen = origin.requests_to(&path);
        assert_eq!(seen.len() as u64, attempts, "{client:?} {kind:?}");
        let same = seen
            .iter()
            .all(|request| (request.body_len, request.body_hash) == (seen[0].body_len, seen[0].body_hash));
        assert!(same, "{client:?} {kind:?} sends another body in its retries: {seen:#?}");
    }
    assert_eq!(origin.stray_bytes(), 0);
}

#[test]
fn curl() {
    check(Client::Curl);
}

#[test]
fn requests() {
    check(Client::Requests);
}

#[test]
fn aiohttp() {
    check(Client::Aiohttp);
}

#[test]
fn go_retryablehttp() {
    check(Client::Go);
}

#[test]
fn undici() {
    check(Client::Undici);
}

#[test]
fn axios_retry() {
    check(Client::Axios);
}

#[test]
fn reqwest_retry() {
    check(Client::Reqwest);
}
