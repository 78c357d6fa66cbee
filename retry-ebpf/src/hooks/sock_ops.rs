//! `sock_ops`: a connection changes its state.
//!
//! Runs under the socket's lock. The return value means nothing here. State changes are asked for at connect,
//! and only for connections that have storage.
use crate::maps::shutdown_offset;
use crate::socket::{now_ms, storage};
use crate::stages::edge::{EdgeRef, config};
use crate::stages::record;
use aya_ebpf::bindings::{
    BPF_SOCK_OPS_STATE_CB, BPF_SOCK_OPS_STATE_CB_FLAG, BPF_SOCK_OPS_TCP_CONNECT_CB, bpf_sock,
};
use aya_ebpf::helpers::generated::bpf_skc_to_tcp_sock;
use aya_ebpf::macros::sock_ops;
use aya_ebpf::programs::SockOpsContext;
use retry_common::abi::{Config, Connection, EdgeCounter, Phase};
use retry_common::tcp::outcome::{Outcome, Seen, outcome, state};

/// `SHUTDOWN_MASK` in `include/net/sock.h`: both directions are shut.
const BOTH_SHUT: u8 = 3;

/// A connection is made, established or ends.
#[sock_ops]
pub fn follow_connection(ctx: SockOpsContext) -> u32 {
    let operation = ctx.op();
    if operation != BPF_SOCK_OPS_TCP_CONNECT_CB && operation != BPF_SOCK_OPS_STATE_CB {
        return 1;
    }
    // SAFETY: a context field.
    let socket: *mut bpf_sock = unsafe { (*ctx.ops).__bindgen_anon_2.sk };
    if socket.is_null() {
        return 1;
    }
    // SAFETY: socket storage; see `socket::of_packet`.
    let Some(connection) = (unsafe { storage(socket.cast(), false).as_mut() }) else { return 1 };
    if operation == BPF_SOCK_OPS_TCP_CONNECT_CB {
        // A refused flag only costs the outcomes of this connection.
        let _ = ctx.set_cb_flags(BPF_SOCK_OPS_STATE_CB_FLAG as i32);
        return 1;
    }
    if let Some(config) = config() {
        let seen = Seen {
            old: ctx.arg(0),
            new: ctx.arg(1),
            reset: connection.saw_reset != 0,
            fin: connection.saw_fin != 0,
            closed: is_shut(socket),
        };
        follow(connection, config, &seen);
    }
    1
}

#[inline(always)]
fn follow(connection: &mut Connection, config: &'static Config, seen: &Seen) {
    if connection.is(Phase::Denied) {
        return;
    }
    let now_ms = now_ms();
    if seen.new == state::ESTABLISHED {
        connection.established = 1;
        if let Some(edge) = EdgeRef::find(&mut connection.edge, now_ms, connection.process) {
            edge.count(EdgeCounter::Established);
        }
        return;
    }
    let Some(outcome) = outcome(seen) else { return };
    if connection.awaiting != 0 {
        record::unanswered(connection, config, now_ms, outcome);
    } else if connection.established == 0 || has_failed(connection, outcome) {
        record::connection_failed(connection, config, now_ms, outcome);
    }
}

/// An established connection without a readable request failed if the server ended it without a word.
#[inline(always)]
fn has_failed(connection: &Connection, outcome: Outcome) -> bool {
    let readable = connection.counted != 0 && !connection.is(Phase::Opaque);
    !readable
        && connection.received == 0
        && connection.failed == 0
        && matches!(outcome, Outcome::Eof | Outcome::Reset)
}

/// Whether the application closed the socket, as opposed to `shutdown(SHUT_WR)`.
#[inline(always)]
fn is_shut(socket: *mut bpf_sock) -> bool {
    // SAFETY: a socket of the context.
    let tcp: *const u8 = unsafe { bpf_skc_to_tcp_sock(socket.cast()) }.cast();
    if tcp.is_null() {
        return false;
    }
    // SAFETY: a load inside `struct tcp_sock`, whose first member is the `struct sock` that the offset is of;
    // the verifier checks the offset against the type.
    unsafe { core::ptr::read_volatile(tcp.add(shutdown_offset() as usize)) & BOTH_SHUT == BOTH_SHUT }
}
