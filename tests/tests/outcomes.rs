//! How an attempt can end, each under its own name, and that each failed end explains the repetition after it.

use std::net::SocketAddr;

use retry_tests::agent::{Exec, Finished};
use retry_tests::netns::{self, Netns};
use retry_tests::origin::{Origin, Plan, Reply};
use retry_tests::require;
use retry_tests::wire::{self, Act, Saw, Script};

const GET: &str = "GET /x HTTP/1.1\r\nHost: outcomes\r\n\r\n";

fn get(path: &str) -> String {
    GET.replace("/x", path)
}

/// Plays a script that has to go as planned.
fn play(exec: &Exec, script: &Script) -> (Finished, Vec<Saw>) {
    let finished = exec.run_well(&script.command());
    let saw = wire::saw(&finished.ended.stdout);
    (finished, saw)
}

/// One attempt that fails by `reply`, ended by `last_act`, then the same request with success.
fn fails_once(reply: Reply, ends: &[Act], outcome: &str) {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Plan::times(1, reply));
    let failing =
        ends.iter().fold(Script::to(origin.address()).send(GET), |script, act| script.then(act.clone()));
    let script = failing.connect(origin.address()).exchange(GET);
    let (finished, saw) = play(&agent.observe(), &script);
    assert_eq!(saw.last().unwrap().answer().status, 200);
    let edge = finished.edge(origin.address());
    assert_eq!(edge.failures_seen(), [(outcome, 1)], "{saw:?}");
    assert_eq!((edge.calls, edge.attempts, edge.retries_by("repetition")), (1, 2, 1), "{edge:#?}");
}

#[test]
fn a_reset_instead_of_an_answer_counts_as_reset() {
    fails_once(Reply::reset(), &[Act::End], "reset");
}

#[test]
fn a_close_instead_of_an_answer_counts_as_eof() {
    fails_once(Reply::close(), &[Act::End], "eof");
}

#[test]
fn a_client_that_closes_while_waiting_counts_as_abandoned() {
    fails_once(Reply::hang(), &[Act::TryAnswer { limit_ms: 100 }, Act::Close], "abandoned");
}

#[test]
fn a_client_that_resets_while_waiting_counts_as_abandoned() {
    fails_once(Reply::hang(), &[Act::TryAnswer { limit_ms: 100 }, Act::Reset], "abandoned");
}

#[test]
fn a_failure_after_a_1xx_counts_as_its_final_status() {
    let reply = Reply::status(503).interim(&[102, 103]);
    fails_once(reply, &[Act::Answer { bodiless: false }], "status_503");
}

#[test]
fn an_end_after_a_1xx_counts_as_eof() {
    fails_once(Reply::raw(b"HTTP/1.1 103 Early Hints\r\n\r\n"), &[Act::End], "eof");
}

#[test]
fn a_half_closed_client_that_gets_its_answer_counts_as_success() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let script = Script::to(origin.address()).send(GET).then(Act::ShutdownWrite).answer().then(Act::End);
    let (finished, saw) = play(&agent.observe(), &script);
    assert_eq!(saw[1].answer().status, 200);
    assert_eq!(finished.edge(origin.address()).failures_seen(), []);
}

#[test]
fn an_idle_connection_that_the_server_closes_counts_as_no_failure() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Reply::status(200).closing());
    let script =
        Script::to(origin.address()).exchange(GET).then(Act::End).connect(origin.address()).exchange(GET);
    let (finished, _) = play(&agent.observe(), &script);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.failures_seen(), edge.all_retries(), edge.calls), (vec![], 0, 2), "{edge:#?}");
}

#[test]
fn an_interim_answer_before_success_is_no_failure() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Reply::status(200).interim(&[100, 102, 103]));
    let (finished, saw) = play(&agent.observe(), &Script::to(origin.address()).exchange(GET).exchange(GET));
    assert_eq!(saw[1].answer().interim, [100, 102, 103]);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.failures_seen(), edge.calls, edge.attempts), (vec![], 2, 2), "{edge:#?}");
}

/// Sends one request twice for each status; gives the failures counted.
fn failures_among(exec: &Exec, statuses: &[u16]) -> (Vec<(String, u64)>, u64) {
    let origin = Origin::start();
    let mut script = Script::to(origin.address());
    for status in statuses {
        let path = format!("/{status}");
        origin.plan(&path, Plan::times(1, Reply::status(*status)));
        script = script.exchange(&get(&path)).exchange(&get(&path));
    }
    let (finished, _) = play(exec, &script);
    let edge = finished.edge(origin.address());
    assert_eq!(edge.attempts, 2 * statuses.len() as u64);
    let failures = edge.failures_seen().into_iter().map(|(name, count)| (name.to_owned(), count));
    (failures.collect(), edge.retries_by("repetition"))
}

#[test]
fn only_429_and_the_usual_5xx_are_failures() {
    let Some(agent) = require::agent() else { return };
    let statuses = [200, 204, 301, 304, 400, 401, 404, 409, 429, 499, 500, 501, 502, 503, 504, 505];
    let (failures, retries) = failures_among(&agent.observe(), &statuses);
    let names: Vec<&str> = failures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["status_429", "status_500", "status_502", "status_503", "status_504"]);
    assert!(failures.iter().all(|(_, count)| *count == 1), "{failures:?}");
    assert_eq!(retries, 5);
}

#[test]
fn the_failure_set_can_be_chosen() {
    let Some(agent) = require::agent() else { return };
    let exec = agent.observe().option("--failure-statuses", "404,418");
    let (failures, retries) = failures_among(&exec, &[200, 404, 418, 500, 503]);
    assert_eq!(failures, [("status_404".to_owned(), 1), ("status_418".to_owned(), 1)]);
    assert_eq!(retries, 2);
}

#[test]
fn one_failure_explains_one_repetition() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Plan::times(1, Reply::status(503)));
    let script = Script::to(origin.address()).exchange(GET).exchange(GET).exchange(GET).exchange(GET);
    let (finished, _) = play(&agent.observe(), &script);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.attempts, edge.all_retries(), edge.calls), (4, 1, 3), "{edge:#?}");
}

#[test]
fn a_failure_explains_nothing_after_the_window() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Plan::times(1, Reply::status(503)));
    // Nothing comes on the idle connection: this is a pause of 1.3 s.
    let pause = Act::TryAnswer { limit_ms: 1300 };
    let script = Script::to(origin.address()).exchange(GET).then(pause).exchange(GET);
    let (finished, _) = play(&agent.observe().option("--window", "1s"), &script);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.attempts, edge.all_retries(), finished.report.window_ms), (2, 0, 1000), "{edge:#?}");
}

#[test]
fn another_request_is_no_retry() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let post = |host: &str, header: &str, body: &str| {
        format!(
            "POST /x HTTP/1.1\r\nHost: {host}\r\nx-stable: {header}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    origin.plan("/x", Plan::times(1, Reply::status(503)));
    let failed = post("outcomes", "1", "body");
    let others = [
        failed.replace("POST", "PUT"),
        failed.replace("/x", "/x?page=2"),
        failed.replace("/x", "/y"),
        post("other", "1", "body"),
        post("outcomes", "2", "body"),
        post("outcomes", "1", "b0dy"),
        post("outcomes", "1", "longer body"),
    ];
    let script =
        others.iter().fold(Script::to(origin.address()).exchange(&failed), |s, other| s.exchange(other));
    let (finished, _) = play(&agent.observe(), &script);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.attempts, edge.all_retries()), (1 + others.len() as u64, 0), "{edge:#?}");
}

#[test]
fn a_header_that_differs_by_nature_does_not_hide_a_retry() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Plan::times(1, Reply::status(503)));
    let with = |n: u32| {
        let lines =
            format!("traceparent: 00-{n:032x}-{n:016x}-01\r\nDate: {n}\r\nX-Envoy-Attempt-Count: {n}\r\n");
        GET.replace("\r\n\r\n", &format!("\r\n{lines}\r\n"))
    };
    let script = Script::to(origin.address()).exchange(&with(1)).exchange(&with(2));
    let (finished, _) = play(&agent.observe(), &script);
    assert_eq!(finished.edge(origin.address()).retries_by("repetition"), 1);
}

/// An address where nobody listens: it is no test's own, and port 9 (discard) is out of use.
fn closed_port() -> SocketAddr {
    "127.0.81.1:9".parse().unwrap()
}

#[test]
fn a_refused_connect_is_counted_and_explains_the_next_connect() {
    let Some(agent) = require::agent() else { return };
    let closed = closed_port();
    let script = Script::to(closed).connect(closed).connect(closed);
    let (finished, saw) = play(&agent.observe(), &script);
    assert!(saw.iter().all(|saw| *saw == Saw::Connected(Some("ECONNREFUSED".to_owned()))), "{saw:?}");
    let edge = finished.tcp_edge(closed);
    assert_eq!(edge.connections_by("refused"), 3, "{edge:#?}");
    assert_eq!(edge.failures_seen(), [("refused", 3)]);
    assert_eq!((edge.attempts, edge.calls, edge.retries_by("connection")), (3, 1, 2), "{edge:#?}");
    assert_eq!((edge.denied, edge.connections_by("denied")), (0, 0));
}

#[test]
fn a_connect_retry_is_denied_only_where_connection_evidence_suffices() {
    let Some(agent) = require::agent() else { return };
    for (act_on, denied) in [("repetition", 0), ("connection", 2)] {
        let closed = closed_port();
        let script = Script::to(closed).connect(closed).connect(closed);
        let exec = agent.enforce("none").option("--act-on", act_on);
        let (finished, saw) = play(&exec, &script);
        assert!(saw.iter().all(|saw| *saw == Saw::Connected(Some("ECONNREFUSED".to_owned()))), "{saw:?}");
        let edge = finished.tcp_edge(closed);
        assert_eq!((edge.denied, edge.connections_by("denied")), (denied, denied), "{act_on}: {edge:#?}");
        assert_eq!(edge.connections_by("refused"), 3 - denied, "{act_on}: {edge:#?}");
        assert_eq!((edge.calls, edge.attempts), (1, 3), "{act_on}: {edge:#?}");
    }
}

/// Two namespaces, the second of which swallows everything that is sent to its address.
fn silent_network() -> (Netns, Netns, SocketAddr) {
    let (client, silent) = (Netns::new(), Netns::new());
    netns::join(netns::end(&client, "c0", "10.80.0.1/24"), netns::end(&silent, "s0", "10.80.0.2/24"));
    silent.run("nft add table ip test");
    silent.run("nft add chain ip test inbound { type filter hook input priority 0 ; policy drop ; }");
    (client, silent, "10.80.0.2:80".parse().unwrap())
}

#[test]
fn a_connect_that_the_client_gives_up_counts_as_connect_timeout() {
    let Some(agent) = require::agent() else { return };
    let (netns, _silent, nowhere) = silent_network();
    let connect = Act::Connect { to: nowhere, limit_ms: Some(150) };
    let script = Script::default().then(connect.clone()).then(connect);
    let finished = agent.observe().run_well(&netns.command(&script.command()));
    let edge = finished.tcp_edge(nowhere);
    assert_eq!(edge.failures_seen(), [("connect_timeout", 2)], "{edge:#?}");
    assert_eq!((edge.connections_by("timed_out"), edge.retries_by("connection")), (2, 1), "{edge:#?}");
}

#[test]
fn a_connect_that_the_kernel_gives_up_counts_as_connect_timeout() {
    let Some(agent) = require::agent() else { return };
    let (netns, _silent, nowhere) = silent_network();
    netns.run("sysctl -qw net.ipv4.tcp_syn_retries=1");
    let finished = agent.observe().run_well(&netns.command(&Script::to(nowhere).command()));
    assert_eq!(wire::saw(&finished.ended.stdout), [Saw::Connected(Some("ETIMEDOUT".to_owned()))]);
    let edge = finished.tcp_edge(nowhere);
    assert_eq!((edge.failures_seen(), edge.connections_by("timed_out")), (vec![("connect_timeout", 1)], 1));
}
