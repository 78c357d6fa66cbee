//! The daemon: what it counts is what happened, in bounded space, and it leaves no trace.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use retry_tests::agent::{Agent, Daemon};
use retry_tests::cgroup::Cgroup;
use retry_tests::origin::{Origin, Reply};
use retry_tests::scrape::{self, Samples};
use retry_tests::wire::{self, Saw, Script};
use retry_tests::{process, require, scratch_file, wait};

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\n\r\n")
}

fn play(cgroup: &Cgroup, script: &Script) -> Vec<Saw> {
    let ended = process::run(&mut cgroup.command(&script.command()));
    ended.assert_success();
    wire::saw(&ended.stdout)
}

/// A call that fails, its retry on a new connection; gives the retry's answer.
fn retry(cgroup: &Cgroup, origin: &Origin, path: &str) -> wire::Answer {
    origin.plan(path, Reply::status(503));
    let call = || Script::to(origin.address()).exchange(&get(path));
    play(cgroup, &call().and(call())).last().unwrap().answer().clone()
}

fn enforcing(cgroup: &Cgroup) -> String {
    let name = cgroup.name();
    format!(
        "cgroup: /{name}\ndefault: {{ mode: observe, budget: unlimited }}\nrules:\n  - name: test\n    \
         match: {{ workload: \"{name}*\" }}\n    mode: enforce\n    budget: none\n    retry_after: 3s\n"
    )
}

#[test]
fn the_numbers_are_what_happened() {
    let Some(agent) = require::agent() else { return };
    let (cgroup, origin) = (Cgroup::new(), Origin::start());
    let daemon = Daemon::start(&agent, &enforcing(&cgroup));
    let denial = retry(&cgroup, &origin, "/fails");
    assert_eq!(
        (denial.status, denial.denied_by(), denial.header("retry-after")),
        (503, Some("none"), Some("3"))
    );
    play(&cgroup, &Script::to(origin.address()).exchange(&get("/1")).exchange(&get("/2")));
    let samples = daemon.scrape();
    let destination = origin.address().to_string();
    let edge = [("workload", cgroup.name()), ("destination", &destination), ("protocol", "http1")];
    let sum = |name: &str, label: &[(&str, &str)]| samples.sum(name, &[&edge[..], label].concat());
    assert_eq!(sum("retry_agent_calls_total", &[]), 3.0, "{samples:#?}");
    assert_eq!(sum("retry_agent_retries_total", &[]), 1.0);
    assert_eq!(sum("retry_agent_retries_total", &[("evidence", "repetition")]), 1.0);
    assert_eq!(sum("retry_agent_retries_denied_total", &[("budget", "none")]), 1.0);
    assert_eq!(sum("retry_agent_retries_would_deny_total", &[]), 0.0);
    assert_eq!(sum("retry_agent_failures_total", &[("outcome", "status_503")]), 1.0);
    assert_eq!(sum("retry_agent_failures_total", &[]), 1.0);
    assert_eq!(sum("retry_agent_connections_total", &[("result", "established")]), 3.0);
    daemon.stop();
}

#[test]
fn health_and_readiness_answer_200() {
    let Some(agent) = require::agent() else { return };
    let cgroup = Cgroup::new();
    let daemon = Daemon::start(&agent, &enforcing(&cgroup));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(scrape::get(daemon.metrics(), path).unwrap().0, 200, "{path}");
    }
    assert_eq!(scrape::get(daemon.metrics(), "/nowhere").unwrap().0, 404);
    daemon.stop();
}

#[test]
fn two_workloads_are_two_edges_with_their_own_rules() {
    let Some(agent) = require::agent() else { return };
    let (cgroup, origin) = (Cgroup::new(), Origin::start());
    let (capped, free) = (cgroup.child("capped"), cgroup.child("free"));
    let config = enforcing(&cgroup).replace(&format!("{}*", cgroup.name()), capped.name());
    let daemon = Daemon::start(&agent, &config);
    assert_eq!(retry(&capped, &origin, "/fails").denied_by(), Some("none"));
    assert_eq!(retry(&free, &origin, "/fails").denied_by(), None);
    let samples = daemon.scrape();
    let denied =
        |cgroup: &Cgroup| samples.sum("retry_agent_retries_denied_total", &[("workload", cgroup.name())]);
    let retries = |cgroup: &Cgroup| samples.sum("retry_agent_retries_total", &[("workload", cgroup.name())]);
    assert_eq!((denied(&capped), denied(&free)), (1.0, 0.0));
    assert_eq!((retries(&capped), retries(&free)), (1.0, 1.0));
    daemon.stop();
}

#[test]
fn a_rule_can_name_a_destination() {
    let Some(agent) = require::agent() else { return };
    let (cgroup, capped, free) = (Cgroup::new(), Origin::start(), Origin::start());
    let workload = format!("workload: \"{}*\"", cgroup.name());
    let both = format!("{workload}, destination: \"{}\"", capped.address());
    let daemon = Daemon::start(&agent, &enforcing(&cgroup).replace(&workload, &both));
    assert_eq!(retry(&cgroup, &capped, "/fails").denied_by(), Some("none"));
    assert_eq!(retry(&cgroup, &free, "/fails").denied_by(), None);
    daemon.stop();
}

#[test]
fn a_dry_run_denies_nothing_and_says_what_it_would_deny() {
    let Some(agent) = require::agent() else { return };
    let (cgroup, origin) = (Cgroup::new(), Origin::start());
    let daemon = Daemon::start(&agent, &enforcing(&cgroup).replace("enforce", "dry-run"));
    assert_eq!(retry(&cgroup, &origin, "/fails").denied_by(), None);
    let samples = daemon.scrape();
    let sum = |name| samples.sum(name, &[("workload", cgroup.name())]);
    assert_eq!(sum("retry_agent_retries_would_deny_total"), 1.0);
    assert_eq!(sum("retry_agent_retries_denied_total"), 0.0);
    daemon.stop();
}

/// Calls `count` destinations, all of them one server; gives a scrape after it.
fn calls_to_many(agent: &Agent, limits: &str, count: u8) -> Samples {
    let (cgroup, origin) = (Cgroup::new(), Origin::on(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    let config = format!("cgroup: /{}\nlimits: {limits}\n", cgroup.name());
    let daemon = Daemon::start(agent, &config);
    let to = |last: u8| {
        std::net::SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 82, last)), origin.address().port())
    };
    let script =
        (1..=count).fold(Script::default(), |script, last| script.connect(to(last)).exchange(&get("/")));
    let answers = play(&cgroup, &script);
    assert_eq!(answers.len(), 2 * usize::from(count));
    let samples = daemon.scrape();
    daemon.stop();
    samples
}

#[test]
fn more_destinations_than_series_end_in_overflow() {
    let Some(agent) = require::agent() else { return };
    let samples = calls_to_many(&agent, "{ series: 100 }", 80);
    let series = samples.0.iter().filter(|sample| sample.labels.contains_key("destination")).count();
    // The overflow label's own series come on top of the limit.
    assert!(series <= 130, "{series} series");
    assert!(samples.0.iter().any(|sample| sample.labels.get("destination").is_some_and(|d| d == "overflow")));
    assert_eq!(samples.sum("retry_agent_calls_total", &[]), 80.0, "no call is lost in the overflow");
}

#[test]
fn more_destinations_than_edges_are_still_counted() {
    let Some(agent) = require::agent() else { return };
    let samples = calls_to_many(&agent, "{ edges: 16 }", 80);
    assert_eq!(samples.sum("retry_agent_calls_total", &[]), 80.0, "{samples:#?}");
    let mut named: Vec<_> =
        samples.matching("retry_agent_calls_total", &[]).map(|s| &s.labels["destination"]).collect();
    named.sort();
    named.dedup();
    assert!(named.len() <= 18, "{named:?}");
}

#[test]
fn a_daemon_that_was_told_to_stop_denies_nothing_more() {
    let Some(agent) = require::agent() else { return };
    let (cgroup, origin) = (Cgroup::new(), Origin::start());
    let daemon = Daemon::start(&agent, &enforcing(&cgroup));
    assert_eq!(retry(&cgroup, &origin, "/before").denied_by(), Some("none"));
    daemon.stop();
    assert_eq!(retry(&cgroup, &origin, "/after").denied_by(), None);
    assert_eq!(origin.requests_to("/after").len(), 2);
}

#[test]
fn a_daemon_that_was_killed_denies_nothing_more() {
    let Some(agent) = require::agent() else { return };
    let (cgroup, origin) = (Cgroup::new(), Origin::start());
    let daemon = Daemon::start(&agent, &enforcing(&cgroup));
    assert_eq!(retry(&cgroup, &origin, "/before").denied_by(), Some("none"));
    daemon.kill();
    wait::until("a retry that passes", || retry(&cgroup, &origin, "/after").denied_by().is_none());
}

#[test]
fn a_bad_configuration_is_refused_with_file_and_line() {
    let Some(agent) = require::agent() else { return };
    let rule = "  - name: a\n    match: { workload: \"a*\" }\n    mode: enforce\n    budget: none\n";
    let other = rule.replace("name: a", "name: b").replace("a*", "*b");
    let rows = [
        ("an unknown key", "window: 60s\nwindwo: 60s\n".to_owned(), Some(2)),
        ("a bad duration", "\nwindow: soon\n".to_owned(), Some(2)),
        ("a bad status", "failure_statuses: [429, banana]\n".to_owned(), Some(1)),
        ("a bad mode", "default: { mode: enforced, budget: none }\n".to_owned(), Some(1)),
        ("a bad budget", "default: { mode: observe, budget: share=ten }\n".to_owned(), Some(1)),
        (
            "a rule that matches nothing in particular",
            "rules:\n  - name: a\n    match: {}\n".to_owned(),
            None,
        ),
        ("two rules for the same edges", format!("rules:\n{rule}{other}"), None),
        ("a limit below zero", "limits:\n  edges: -1\n".to_owned(), Some(2)),
    ];
    let path = scratch_file("config");
    for (sentence, text, line) in rows {
        fs::write(&path, text).unwrap();
        let ended = process::run(agent.command(&["check"]).arg(&path));
        assert_eq!(ended.status.code(), Some(2), "{sentence}: {ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        let place =
            line.map_or_else(|| format!("{}:", path.display()), |line| format!("{}:{line}:", path.display()));
        assert!(said.contains(&place), "{sentence}: {said}");
        let run = process::run(agent.command(&["run", "--config"]).arg(&path));
        assert!(!run.status.success(), "{sentence}: the daemon runs with it");
    }
    fs::write(&path, format!("window: 30s\nrules:\n{rule}")).unwrap();
    process::run(agent.command(&["check"]).arg(&path)).assert_success();
    fs::remove_file(&path).unwrap();
}
