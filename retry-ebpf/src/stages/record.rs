//! Writes down how attempts ended.
use super::attempt::{charged, connect_fingerprint};
use super::credit;
use super::edge::{EdgeRef, policy};
use retry_common::abi::{Config, Connection, EdgeCounter, Mode, Phase};
use retry_common::recogniser::Evidence;
use retry_common::tcp::outcome::Outcome;

/// The status of the answer to the outstanding request arrived.
#[inline(always)]
pub fn status(connection: &mut Connection, config: &'static Config, now_ms: u64, status: u16) {
    connection.awaiting = 0;
    let Some(edge) = EdgeRef::find(&mut connection.edge, now_ms, connection.process) else { return };
    if config.is_failure(status) {
        if let Some(position) = config.position(status) {
            edge.count_status(position);
        }
        edge.fail(now_ms);
        credit::deposit(connection.fingerprint, now_ms, config.window_ms);
    } else {
        succeeded(connection, config, edge, now_ms);
    }
}

#[inline(always)]
fn succeeded(connection: &mut Connection, config: &'static Config, edge: EdgeRef, now_ms: u64) {
    if connection.limited == 0 {
        return;
    }
    if let Some(policy) = policy(connection, config) {
        edge.success(&policy.rules, now_ms);
    }
}

/// The outstanding request will have no answer.
#[inline(always)]
pub fn unanswered(connection: &mut Connection, config: &'static Config, now_ms: u64, outcome: Outcome) {
    connection.awaiting = 0;
    let Some(edge) = EdgeRef::find(&mut connection.edge, now_ms, connection.process) else { return };
    edge.count(match outcome {
        Outcome::Eof => EdgeCounter::HttpEof,
        Outcome::Abandoned => EdgeCounter::HttpAbandoned,
        Outcome::Refused | Outcome::TimedOut | Outcome::Reset => EdgeCounter::HttpReset,
    });
    edge.fail(now_ms);
    credit::deposit(connection.fingerprint, now_ms, config.window_ms);
}

/// A connection that carried no request ended: before it was established, or before the server said anything.
#[inline(always)]
pub fn connection_failed(
    connection: &mut Connection,
    config: &'static Config,
    now_ms: u64,
    outcome: Outcome,
) {
    connection.failed = 1;
    let Some(edge) = EdgeRef::find(&mut connection.edge, now_ms, connection.process) else { return };
    if connection.counted == 0 {
        count_connection(connection, config, edge, now_ms);
    }
    edge.count(match outcome {
        Outcome::Refused => EdgeCounter::Refused,
        Outcome::TimedOut => EdgeCounter::TimedOut,
        Outcome::Eof => EdgeCounter::TcpEof,
        Outcome::Reset | Outcome::Abandoned => EdgeCounter::ResetEarly,
    });
    edge.fail(now_ms);
    credit::deposit(connect_fingerprint(connection), now_ms, config.window_ms);
}

/// Counts a connection as an attempt of its own: it failed, or carries what is not read.
#[inline(always)]
pub fn count_connection(connection: &mut Connection, config: &'static Config, edge: EdgeRef, now_ms: u64) {
    connection.counted = 1;
    edge.count(EdgeCounter::TcpAttempts);
    if connection.connect_evidence == Evidence::None as u8 {
        if connection.limited != 0
            && let Some(policy) = policy(connection, config)
        {
            edge.original(&policy.rules, now_ms);
        }
        return;
    }
    edge.count(EdgeCounter::TcpConnection);
    if connection.connect_charged == charged::EXCESS && is_dry_run(connection, config) {
        edge.count(EdgeCounter::TcpWouldDeny);
    }
    connection.connect_evidence = Evidence::None as u8;
}

/// Whether the connection's policy only says what it would do.
#[inline(always)]
pub fn is_dry_run(connection: &mut Connection, config: &'static Config) -> bool {
    policy(connection, config).is_some_and(|policy| Mode::from_u8(policy.mode) == Mode::DryRun)
}

/// The connection is not (or no longer) read: it counts as one attempt, unless it carried requests before.
/// Not inlined: rare, and its stack is needed elsewhere.
#[inline(never)]
pub fn opaque(connection: &mut Connection, config: &'static Config, now_ms: u64) {
    connection.phase = Phase::Opaque as u8;
    connection.awaiting = 0;
    connection.tracking = 0;
    let Some(edge) = EdgeRef::find(&mut connection.edge, now_ms, connection.process) else { return };
    edge.count(EdgeCounter::Opaque);
    if connection.counted == 0 {
        count_connection(connection, config, edge, now_ms);
    }
}
