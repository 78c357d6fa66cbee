//! Clients that nobody here wrote, unmodified, with their own retry switched on: their retries are counted as the
//! server counts them, and a denied one reads a clean 503 and goes on.

use retry_tests::client::{self, Client, Kind, Said};
use retry_tests::origin::{Origin, Plan, Reply};
use retry_tests::require;

/// A path that always answers 200.
const HEALTHY: &str = "/healthy";

fn path(kind: Kind) -> String {
    format!("/{}", kind.name())
}

/// Every kind of call fails until its last attempt: nothing is denied, and agent and server count the same.
fn counted(client: Client) {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let attempts = client.attempts();
    for kind in client.kinds() {
        let failures = usize::try_from(attempts - 1).unwrap();
        origin.plan(&path(*kind), Plan::times(failures, Reply::status(503)));
    }
    let calls: Vec<_> = client.kinds().iter().map(|kind| (*kind, origin.url(&path(*kind)))).collect();
    let finished = agent.observe().run_well(&client.command(attempts, &calls));
    for (kind, said) in client.kinds().iter().zip(client::said(&finished.ended.stdout)) {
        assert_eq!((said.status, said.error), (Some(200), None), "{kind:?}");
        assert_eq!(origin.requests_to(&path(*kind)).len() as u64, attempts, "{kind:?}");
    }
    let edge = finished.edge(origin.address());
    let calls = calls.len() as u64;
    let retries = calls * (attempts - 1);
    assert_eq!(edge.attempts, origin.requests().len() as u64, "{edge:#?}");
    assert_eq!((edge.calls, edge.all_retries()), (calls, retries), "{edge:#?}");
    assert_eq!(edge.retries_by("repetition"), retries, "{edge:#?}");
    assert_eq!(edge.failures_seen(), [("status_503", retries)]);
    assert_eq!((edge.denied, edge.opaque, edge.uncovered), (0, 0, 0), "{edge:#?}");
    assert_eq!(
        (edge.protocol.as_str(), edge.host.as_deref()),
        ("http1", Some(&*origin.address().to_string()))
    );
}

/// Every kind of call fails for good: the server sees one attempt of each, the client reads the kernel's answer
/// to the others, and its next call works.
fn denied(client: Client) {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let attempts = client.attempts();
    let mut calls = Vec::new();
    for kind in client.kinds() {
        origin.plan(&path(*kind), Reply::status(503));
        calls.push((*kind, origin.url(&path(*kind))));
        calls.push((Kind::Get, origin.url(HEALTHY)));
    }
    let finished = agent.enforce("none").run_well(&client.command(attempts, &calls));
    let said = client::said(&finished.ended.stdout);
    assert_eq!(said.len(), calls.len(), "{finished:#?}");
    for (kind, said) in client.kinds().iter().zip(said.chunks(2)) {
        assert_eq!(said[0], denial(), "{kind:?}: {finished:#?}");
        assert_eq!((said[1].status, &said[1].denied), (Some(200), &None), "after {kind:?}");
        assert_eq!(origin.requests_to(&path(*kind)).len(), 1, "{kind:?} at the server");
    }
    origin.wait_for_ends();
    assert_eq!(origin.stray_bytes(), 0, "the server sees no byte of a denied request");
    let kinds = client.kinds().len() as u64;
    let edge = finished.edge(origin.address());
    assert_eq!(edge.denied, kinds * (attempts - 1), "{edge:#?}");
    assert_eq!(edge.attempts, origin.requests().len() as u64 + edge.denied, "{edge:#?}");
    assert_eq!(edge.calls, 2 * kinds, "{edge:#?}");
}

fn denial() -> Said {
    let text = |text: &str| Some(text.to_owned());
    Said { status: Some(503), retry_after: text("1"), denied: text("none"), error: None }
}

macro_rules! clients {
    ($($name:ident: $client:ident;)*) => {
        $(mod $name {
            use super::Client;

            #[test]
            fn retries_are_counted_as_the_server_counts_them() {
                super::counted(Client::$client);
            }

            #[test]
            fn a_denied_retry_reads_503_and_the_next_call_works() {
                super::denied(Client::$client);
            }
        })*
    };
}

clients! {
    curl: Curl;
    requests_and_urllib3_retry: Requests;
    aiohttp_and_tenacity: Aiohttp;
    go_retryablehttp: Go;
    undici_retry_agent: Undici;
    axios_retry: Axios;
    reqwest_retry: Reqwest;
}
