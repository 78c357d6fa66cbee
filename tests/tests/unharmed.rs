//! Every way to use a socket works under the agent as it does without, in observe and in enforce mode, for a healthy
//! and for a denied call. The rows are those in which other ways to intercept a socket were seen to do harm.

use std::time::Duration;

use retry_tests::agent::Agent;
use retry_tests::origin::{Origin, Reply};
use retry_tests::{process, require};

/// More than any buffer, so that windows close and open again.
const BIG_ANSWER: usize = 2_000_000;

/// Which calls a row makes sense for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Both,
    /// The row is about the server's behaviour, which a denied call does not have.
    Healthy,
}

fn check(row: &str, calls: Calls) {
    let Some(agent) = require::agent() else { return };
    compare(&agent, row, "healthy", healthy(row));
    if calls == Calls::Both {
        compare(&agent, row, "denied", Reply::status(503).closing());
    }
}

/// What the server does with a healthy call of this row.
fn healthy(row: &str) -> Reply {
    match row {
        "reset_while_blocked" => Reply::reset().after(Duration::from_millis(50)),
        "small_sends" => Reply::status(200),
        "slow_reader" | "zerocopy_receive" | "splice_out" => Reply::status(200).body(big_answer()).closing(),
        _ => Reply::status(200).closing(),
    }
}

fn big_answer() -> Vec<u8> {
    (0..BIG_ANSWER).map(|at| (at % 253) as u8).collect()
}

fn compare(agent: &Agent, row: &str, scenario: &str, reply: Reply) {
    let path = format!("/{}/{row}", if scenario == "denied" { "fails" } else { "healthy" });
    let server = || {
        let origin = Origin::start();
        origin.plan(&path, reply.clone());
        origin
    };
    let program = |origin: &Origin| {
        let mut program = std::process::Command::new(require::own_program("socket_rows"));
        program.args([row, &origin.address().to_string(), scenario]);
        program
    };
    let origin = server();
    let bare = process::run(&mut program(&origin));
    bare.assert_success();
    assert!(
        !bare.stdout.contains("no io_uring"),
        "{row}: this kernel has io_uring switched off: {}",
        bare.stdout
    );
    for (mode, exec) in [("observe", agent.observe()), ("enforce", agent.enforce("none"))] {
        let origin = server();
        let finished = exec.run_well(&program(&origin));
        assert_eq!(finished.ended.stdout, bare.stdout, "{row}, {scenario} call, {mode}: right is bare");
        let edge = finished.edge(origin.address());
        let denied = u64::from(scenario == "denied" && mode == "enforce");
        assert_eq!(edge.denied, denied, "{row}, {scenario} call, {mode}: {edge:#?}");
    }
}

macro_rules! rows {
    ($($row:ident: $calls:ident;)*) => {
        $(#[test]
        fn $row() {
            check(stringify!($row), Calls::$calls);
        })*
    };
}

rows! {
    fionread: Both;
    msg_peek: Both;
    so_peek_off: Both;
    tcp_inq: Both;
    msg_waitall: Both;
    so_rcvtimeo: Both;
    slow_reader: Both;
    half_close: Both;
    splice_out: Both;
    splice_in: Both;
    sendfile: Both;
    msg_more: Both;
    nonblocking_upload: Both;
    small_sends: Healthy;
    poll: Both;
    epoll_level: Both;
    epoll_edge: Both;
    signal_restart: Both;
    signal_interrupt: Both;
    stop_and_continue: Both;
    reset_while_blocked: Healthy;
    shutdown_by_another_thread: Both;
    zerocopy_send: Both;
    zerocopy_receive: Both;
    io_uring: Both;
    fork: Both;
    scm_rights: Both;
}
