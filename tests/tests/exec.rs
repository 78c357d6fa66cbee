//! `exec` is invisible to the command it runs, and gone afterwards.

use std::process::Command;

use retry_tests::agent::Daemon;
use retry_tests::origin::{Origin, Reply};
use retry_tests::process::{self, Running};
use retry_tests::wire::{self, Script};
use retry_tests::{cgroup, require, scrape, scratch_file, wait};

const GET: &str = "GET /x HTTP/1.1\r\nHost: exec\r\n\r\n";

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

#[test]
fn the_status_is_the_commands() {
    let Some(agent) = require::agent() else { return };
    for (line, status) in
        [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + 15), ("kill -KILL $$", 128 + 9)]
    {
        let finished = agent.observe().run(&shell(line));
        assert_eq!(finished.ended.status.code(), Some(status), "{line}: {:?}", finished.ended);
    }
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let Some(agent) = require::agent() else { return };
    let ended = process::run(&mut agent.command(&["exec", "--", "/no/such/command"]));
    assert!(matches!(ended.status.code(), Some(1..)), "{ended:?}");
    assert!(ended.stderr.contains("/no/such/command"), "{ended:?}");
}

#[test]
fn output_and_environment_pass_through() {
    let Some(agent) = require::agent() else { return };
    let mut command = agent.command(&["exec", "--", "sh", "-c", "echo out $SAID; echo err >&2"]);
    let ended = process::run(command.env("SAID", "heard"));
    assert_eq!(ended.stdout, "out heard\n");
    assert!(ended.stderr.contains("err\n"), "{ended:?}");
}

#[test]
fn signals_reach_the_command() {
    let Some(agent) = require::agent() else { return };
    for (name, signal) in
        [("TERM", libc::SIGTERM), ("INT", libc::SIGINT), ("HUP", libc::SIGHUP), ("USR1", libc::SIGUSR1)]
    {
        let ready = scratch_file("ready");
        let line = format!("trap 'exit 7' {name}; touch {}; while :; do sleep 0.05; done", ready.display());
        let started = agent.observe().start(&shell(&line));
        wait::until("the command is ready", || ready.exists());
        started.running.signal(signal);
        let finished = started.finish();
        assert_eq!(finished.ended.status.code(), Some(7), "{name}: {:?}", finished.ended);
        std::fs::remove_file(ready).unwrap();
    }
}

#[test]
fn nothing_is_left_behind() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    let finished = agent.enforce("none").run_well(&Script::to(origin.address()).exchange(GET).command());
    let workload = finished.edge(origin.address()).workload.clone();
    assert!(!workload.is_empty());
    let name = workload.rsplit('/').next().unwrap();
    assert_eq!(cgroup::children_named(name), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_process_that_outlives_the_command_is_not_denied_any_more() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Reply::status(503));
    let (ready, go, said) = (scratch_file("ready"), scratch_file("go"), scratch_file("said"));
    let script = Script::to(origin.address()).exchange(GET).connect(origin.address()).exchange(GET).command();
    let program = script.get_program().to_string_lossy().into_owned();
    let args = script.get_args().next().unwrap().to_string_lossy().replace('\'', "'\\''");
    let line = format!(
        "(touch {}; while [ ! -e {} ]; do sleep 0.02; done; {program} '{args}' > {}.part; mv {}.part {}) \
         > /dev/null 2>&1 & while [ ! -e {} ]; do sleep 0.02; done",
        ready.display(),
        go.display(),
        said.display(),
        said.display(),
        said.display(),
        ready.display(),
    );
    agent.enforce("none").run_well(&shell(&line));
    std::fs::write(&go, "").unwrap();
    let text = wait::until_some("the outliving process", || std::fs::read_to_string(&said).ok());
    let denied =
        wire::saw(&text).iter().any(|saw| matches!(saw, wire::Saw::Answer(a) if a.denied_by().is_some()));
    assert!(!denied, "{text}");
    for file in [ready, go, said] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn the_summary_names_the_edge_and_what_was_denied() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Reply::status(503));
    let script = Script::to(origin.address()).exchange(GET).connect(origin.address()).exchange(GET);
    let finished = agent.enforce("none").run_well(&script.command());
    let (summary, address) = (&finished.ended.stderr, origin.address().to_string());
    assert!(summary.contains(&address), "{summary}");
    assert!(summary.contains("503"), "{summary}");
    assert_eq!((finished.report.schema, finished.report.mode.as_str()), (1, "enforce"));
}

#[test]
fn a_budget_alone_means_enforce_and_nothing_means_observe() {
    let Some(agent) = require::agent() else { return };
    for (options, mode) in [(&["--budget", "none"][..], "enforce"), (&[][..], "observe")] {
        assert_eq!(agent.exec(options).run_well(&shell("true")).report.mode, mode);
    }
}

#[test]
fn a_dry_run_passes_everything_and_counts_what_it_would_deny() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/x", Reply::status(503));
    let script = Script::to(origin.address()).exchange(GET).connect(origin.address()).exchange(GET);
    let finished = agent.exec(&["--mode", "dry-run", "--budget", "none"]).run_well(&script.command());
    let edge = finished.edge(origin.address());
    assert_eq!((edge.would_deny, edge.denied, origin.requests().len()), (1, 0, 2), "{edge:#?}");
}

#[test]
fn metrics_are_served_while_the_command_runs() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    origin.plan("/hang", Reply::hang());
    let script =
        Script::to(origin.address()).exchange(GET).exchange("GET /hang HTTP/1.1\r\nHost: exec\r\n\r\n");
    let metrics = Daemon::free_address();
    let mut command = agent.command(&["exec", "--metrics", &metrics.to_string(), "--"]);
    let inner = script.command();
    let running = Running::start(command.arg(inner.get_program()).args(inner.get_args()));
    let destination = origin.address().to_string();
    let calls = |text: &str| {
        scrape::Samples::parse(text).sum("retry_agent_calls_total", &[("destination", destination.as_str())])
    };
    wait::until("both calls in the metrics", || {
        scrape::get(metrics, "/metrics").is_ok_and(|(status, text)| status == 200 && calls(&text) == 2.0)
    });
    running.signal(libc::SIGTERM);
    assert_eq!(process::shell_status(running.wait(process::LIMIT).status), 128 + libc::SIGTERM);
}

#[test]
fn what_the_kernel_side_passes_unread_is_told_at_debug_level() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start();
    // IP options (two no-operations), which the kernel side does not read behind.
    let client = format!(
        "import socket, time\ns = socket.socket()\ns.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b'\\1\\1\\1\\0')\n\
         s.connect(('127.0.0.1', {}))\ns.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')\ns.recv(1)\ntime.sleep(1)",
        origin.address().port()
    );
    let exec = ["exec", "--", "python3", "-c", &client];
    let quiet = process::run(&mut agent.command(&exec));
    quiet.assert_success();
    assert!(!quiet.stderr.contains("passed unread"), "{quiet:?}");
    let told = process::run(agent.command(&exec).env("RUST_LOG", "debug"));
    assert!(told.stderr.contains("judge_request: passed unread: packet_headers"), "{told:?}");
}
