//! One program per way to use a socket. Each makes a call and prints what it observed, one JSON list of
//! sentences, so that a run under the agent can be compared with a run without it.
//!
//! `socket_rows ROW ADDRESS healthy|denied`. For `denied` the same call is first made plainly and fails, so that the
//! observed one is a retry. What is observed holds for any answer that the server then closes after, whoever
//! gives it.

mod call;
mod receive;
mod send;
mod share;
mod sys;
mod uring;
mod wake;
mod zerocopy;

use call::Call;

/// What a row saw, in order.
pub type Seen = Vec<String>;

type Row = fn(&Call) -> Seen;

const ROWS: &[(&str, Row)] = &[
    ("fionread", receive::fionread),
    ("msg_peek", receive::msg_peek),
    ("so_peek_off", receive::so_peek_off),
    ("tcp_inq", receive::tcp_inq),
    ("msg_waitall", receive::msg_waitall),
    ("so_rcvtimeo", receive::so_rcvtimeo),
    ("slow_reader", receive::slow_reader),
    ("half_close", receive::half_close),
    ("splice_out", receive::splice_out),
    ("splice_in", send::splice_in),
    ("sendfile", send::sendfile),
    ("msg_more", send::msg_more),
    ("nonblocking_upload", send::nonblocking_upload),
    ("small_sends", send::small_sends),
    ("poll", wake::poll),
    ("epoll_level", wake::epoll_level),
    ("epoll_edge", wake::epoll_edge),
    ("signal_restart", wake::signal_restart),
    ("signal_interrupt", wake::signal_interrupt),
    ("stop_and_continue", wake::stop_and_continue),
    ("reset_while_blocked", wake::reset_while_blocked),
    ("shutdown_by_another_thread", wake::shutdown_by_another_thread),
    ("zerocopy_send", zerocopy::send),
    ("zerocopy_receive", zerocopy::receive),
    ("io_uring", uring::send_and_receive),
    ("fork", share::fork),
    ("scm_rights", share::scm_rights),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [row, address, scenario] = args.as_slice() else { panic!("socket_rows ROW ADDRESS healthy|denied") };
    let (_, run) = ROWS.iter().find(|(name, _)| name == row).unwrap_or_else(|| panic!("no row {row}"));
    let call = Call::new(address.parse().expect("an address"), scenario == "denied", row);
    let seen = run(&call);
    println!("{}", serde_json::to_string(&seen).expect("plain data"));
}
