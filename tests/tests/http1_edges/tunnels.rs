//! What stops being HTTP/1, or never was: passed as it is in both directions, and counted as opaque.

use retry_tests::agent::{Agent, Exec};
use retry_tests::origin::{Origin, Peer, Plan, Reply};
use retry_tests::require;
use retry_tests::wire::{self, Act, Saw, Script};

const AFTER: &str = "GET /fails HTTP/1.1\r\nHost: inside\r\n\r\n\0\u{1}opaque bytes";

fn modes(agent: &Agent) -> [Exec; 2] {
    [agent.observe(), agent.enforce("none")]
}

/// Text out and the same text back.
fn echoed(script: Script, text: &str) -> Script {
    script.send(text).then(Act::Bytes { count: text.len() })
}

fn assert_echoed(saw: &[Saw], text: &str, times: usize) {
    let echoes = saw.iter().filter(|saw| **saw == Saw::Bytes(text.as_bytes().to_vec())).count();
    assert_eq!(echoes, times, "{saw:?}");
}

#[test]
fn an_upgraded_connection_passes_unharmed() {
    let Some(agent) = require::agent() else { return };
    let upgrade = "GET /chat HTTP/1.1\r\nHost: edges\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    for exec in modes(&agent) {
        let origin = Origin::start();
        let switch = Reply::tunnel(101).header("Upgrade", "websocket").header("Connection", "Upgrade");
        origin.plan("/chat", switch);
        let script = Script::to(origin.address()).send(upgrade).then(Act::Head);
        let script = echoed(echoed(script, AFTER), AFTER);
        let finished = exec.run_well(&script.command());
        let saw = wire::saw(&finished.ended.stdout);
        assert_eq!(saw[1], Saw::Head(101));
        assert_echoed(&saw, AFTER, 2);
        let edge = finished.edge(origin.address());
        assert_eq!((edge.attempts, edge.denied, edge.failures_seen()), (1, 0, vec![]), "{edge:#?}");
    }
}

#[test]
fn a_refused_upgrade_is_an_ordinary_failure() {
    let Some(agent) = require::agent() else { return };
    let upgrade = "GET /chat HTTP/1.1\r\nHost: edges\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let origin = Origin::start();
    origin.plan("/chat", Plan::times(1, Reply::status(503)).then(Reply::tunnel(101)));
    let script = Script::to(origin.address()).exchange(upgrade).connect(origin.address()).send(upgrade);
    let finished = agent.observe().run_well(&echoed(script.then(Act::Head), AFTER).command());
    assert_echoed(&wire::saw(&finished.ended.stdout), AFTER, 1);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.attempts, edge.failures_by("status_503")), (2, 1), "{edge:#?}");
}

#[test]
fn a_connect_tunnel_passes_unharmed() {
    let Some(agent) = require::agent() else { return };
    let connect = "CONNECT inside:443 HTTP/1.1\r\nHost: inside:443\r\n\r\n";
    for exec in modes(&agent) {
        let origin = Origin::start();
        origin.plan("inside:443", Reply::tunnel(200));
        let script = Script::to(origin.address()).send(connect).then(Act::Head);
        let finished = exec.run_well(&echoed(echoed(script, AFTER), AFTER).command());
        assert_echoed(&wire::saw(&finished.ended.stdout), AFTER, 2);
        assert_eq!(finished.edge(origin.address()).denied, 0);
    }
}

#[test]
fn bytes_that_are_no_http_pass_unharmed() {
    let Some(agent) = require::agent() else { return };
    let kinds: [(&str, &[u8]); 7] = [
        ("TLS", b"\x16\x03\x01\x00\x05hello\x00\x00\x00"),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
        ("zeros", &[0; 100]),
        ("one line without an end", b"HELO there this is no request and it never ends, on and on"),
        ("Redis", b"*1\r\n$4\r\nPING\r\n"),
        ("a request of a version to come", b"GET / HTTP/9.9\r\n\r\n"),
        ("a broken header", b"GET / HTTP/1.1\r\nHost edges\r\n: \r\n\x80\xff\r\n\r\n"),
    ];
    for exec in modes(&agent) {
        for (kind, bytes) in kinds {
            let peer = Peer::echo();
            let once = |script: Script| {
                script.then(Act::SendBytes { bytes: bytes.to_vec() }).then(Act::Bytes { count: bytes.len() })
            };
            let script = once(once(Script::to(peer.address()))).connect(peer.address());
            let finished = exec.run_well(&once(script).command());
            let saw = wire::saw(&finished.ended.stdout);
            let echoes = saw.iter().filter(|saw| **saw == Saw::Bytes(bytes.to_vec())).count();
            assert_eq!(echoes, 3, "{kind}: {saw:?}");
            assert_eq!(peer.received(), bytes.repeat(3), "{kind}");
        }
    }
}

#[test]
fn random_bytes_pass_unharmed_however_they_begin() {
    let Some(agent) = require::agent() else { return };
    let peer = Peer::echo();
    let mut script = Script::default();
    let mut sent = Vec::new();
    for seed in 1..=40_u64 {
        let bytes = random_bytes(seed);
        sent.extend_from_slice(&bytes);
        let count = bytes.len();
        script = script.connect(peer.address()).then(Act::SendBytes { bytes }).then(Act::Bytes { count });
    }
    let finished = agent.enforce("none").run_well(&script.command());
    assert_eq!(wire::saw(&finished.ended.stdout).len(), 80);
    assert_eq!(peer.received(), sent);
}

/// The same for every run: xorshift64 (Marsaglia 2003) from the seed. Every other begins like a request.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let count = 1 + next() % 600;
    let mut bytes = if seed.is_multiple_of(2) { b"GET / HTTP/1.1\r\n".to_vec() } else { Vec::new() };
    bytes.extend((0..count).map(|_| next().to_le_bytes()[0]));
    bytes
}
