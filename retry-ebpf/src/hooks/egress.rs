//! `cgroup_skb/egress`: a packet leaves a socket of the cgroup. Always returns 1: packets of denied requests
//! go on to the device, where `reflect_denied` turns them round.
//!
//! Runs behind POSTROUTING, so addresses are those on the wire; in process context or in softirq, hence no
//! per-CPU memory. Cost: two storage look-ups, a step per line of the head, one or two hash look-ups.
use crate::fail::{count, passed};
use crate::maps::{DENIED, HEADERS, LAST_DENIAL};
use crate::packet::{self, Headers, Read};
use crate::socket::{now_ms, of_packet};
use crate::stages::attempt::{Bench, charged};
use crate::stages::edge::{EdgeRef, config, emit, policy};
use crate::stages::record;
use crate::stages::window::{MOST_STEPS, Shown, Window};
use aya_ebpf::helpers::generated::bpf_loop;
use aya_ebpf::macros::cgroup_skb;
use aya_ebpf::programs::SkBuffContext;
use core::ffi::c_void;
use retry_common::abi::{
    Config, Connection, EdgeCounter, EventKind, Fail, Flow, HOST_LEN, Phase, Turn, names,
};
use retry_common::hash::low_bytes;
use retry_common::http1::{Events, Input};
use retry_common::judge::Verdict;
use retry_common::recogniser::Evidence;
use retry_common::tcp::{Place, flag, place};

/// A packet leaves.
#[cgroup_skb(egress)]
pub fn judge_request(ctx: SkBuffContext) -> i32 {
    if let Err(fail) = try_judge(&ctx) {
        passed(&ctx, names::EGRESS, fail);
    }
    1
}

#[inline(always)]
fn try_judge(ctx: &SkBuffContext) -> Result<(), Fail> {
    // SAFETY: a context field.
    let Some(connection) = of_packet(unsafe { (*ctx.skb.skb).__bindgen_anon_2.sk }) else { return Ok(()) };
    if connection.is(Phase::Opaque) {
        return Ok(());
    }
    let Some(config) = config() else { return Ok(()) };
    let headers = match packet::read(ctx.skb.skb, 0) {
        Read::Tcp(headers) => headers,
        Read::Other => return Ok(()),
        Read::Unusual | Read::Short => {
            record::opaque(connection, config, now_ms());
            return Err(Fail::Headers);
        }
    };
    if headers.segment.has(flag::SYN) {
        return begin_stream(connection, config, &headers);
    }
    if headers.segment.len == 0 {
        return Ok(());
    }
    match place(connection.request.next, headers.segment.seq, headers.segment.len) {
        Place::Old => Ok(()),
        Place::New { skip } => {
            read_request(ctx, connection, config, &headers, skip);
            Ok(())
        }
        Place::Gap(_) => {
            give_up(connection, config, &headers);
            Err(Fail::Gap)
        }
    }
}

/// The SYN fixes where the stream begins.
#[inline(always)]
fn begin_stream(connection: &mut Connection, config: &'static Config, headers: &Headers) -> Result<(), Fail> {
    connection.request.next = headers.segment.seq.wrapping_add(1);
    connection.phase = Phase::Reading as u8;
    // An older connection with these addresses may have been denied. Not there: nothing to do.
    let _ = DENIED.remove(headers.flow);
    if headers.segment.len != 0 {
        record::opaque(connection, config, now_ms());
        return Err(Fail::FastOpen);
    }
    Ok(())
}

/// The stream cannot be followed any more. A denial that has begun is brought to its end.
#[inline(always)]
fn give_up(connection: &mut Connection, config: &'static Config, headers: &Headers) {
    if connection.is(Phase::Denied) {
        complete(headers);
    } else {
        record::opaque(connection, config, now_ms());
    }
}

/// What a walk through one packet carries along.
struct Walk {
    window: Window,
    connection: *mut Connection,
    config: &'static Config,
    now_ms: u64,
    ack: u32,
}

#[inline(always)]
fn read_request(
    ctx: &SkBuffContext,
    connection: &mut Connection,
    config: &'static Config,
    headers: &Headers,
    skip: u32,
) {
    let was_denied = connection.is(Phase::Denied);
    let base = connection.request.next;
    let end = headers.data_at + headers.segment.len;
    let window = Window::new(ctx.skb.skb, &mut connection.request, headers.data_at + skip, end);
    let mut walk = Walk { window, connection, config, now_ms: now_ms(), ack: headers.segment.ack };
    // SAFETY: the callback gets the address of `walk`, which outlives the loop.
    unsafe { bpf_loop(MOST_STEPS, step as *const () as *mut c_void, (&raw mut walk).cast(), 0) };
    // SAFETY: the walk's own pointer to the storage, back from the callback.
    let connection = unsafe { &mut *walk.connection };
    if connection.request.stopped == 0 {
        count(Fail::TooManySteps);
        end_reading(&walk, connection);
    }
    connection.request.next = headers.segment.seq.wrapping_add(headers.segment.len);
    if !connection.is(Phase::Denied) {
        return;
    }
    if was_denied {
        if connection.request.complete != 0 {
            complete(headers);
        }
        return;
    }
    let flow = Flow {
        base,
        answer_at: headers.segment.ack,
        policy: connection.policy,
        complete: connection.request.complete,
        ..Flow::default()
    };
    deny(connection, headers, &flow, walk.now_ms);
}

/// From here on the packets of this flow are turned round; if that cannot be noted, the request passes.
#[inline(always)]
fn deny(connection: &mut Connection, headers: &Headers, flow: &Flow, now_ms: u64) {
    if DENIED.insert(headers.flow, flow, 0).is_err() {
        count(Fail::MapUpdate);
        connection.phase = Phase::Opaque as u8;
        return;
    }
    if let Some(last) = LAST_DENIAL.get_ptr_mut(0) {
        // SAFETY: one store into an array's element.
        unsafe { *last = now_ms };
    }
}

/// The denied request of this flow is complete.
#[inline(always)]
fn complete(headers: &Headers) {
    if let Some(flow) = DENIED.get_ptr_mut(headers.flow) {
        // SAFETY: one store into a map value.
        unsafe { (*flow).complete = 1 };
    }
}

/// One step of the walk; 1 ends it.
extern "C" fn step(_index: u64, walk: *mut Walk) -> i64 {
    // SAFETY: `read_request`'s own.
    let walk = unsafe { &mut *walk };
    // SAFETY: socket storage.
    let connection = unsafe { &mut *walk.connection };
    let input = match walk.window.show() {
        Shown::Bytes(input) => input,
        Shown::Done => return stop(connection),
        Shown::Failed => {
            count(Fail::ReadFailed);
            end_reading(walk, connection);
            return stop(connection);
        }
    };
    let step = connection.request.machine.request_step(&input, &walk.config.header_filter);
    if step.consumed == 0 && step.events == Events::NONE {
        walk.window.carry(&input);
        return stop(connection);
    }
    walk.window.take(step.consumed);
    if step.events != Events::NONE {
        handle(walk, connection, &input, step.events, step.consumed);
    }
    i64::from(connection.request.stopped & 1)
}

#[inline(always)]
fn stop(connection: &mut Connection) -> i64 {
    connection.request.stopped = 1;
    1
}

#[inline(always)]
fn handle(walk: &Walk, connection: &mut Connection, input: &Input, events: Events, consumed: u32) {
    if events.has(Events::NAME) {
        let name = connection.request.machine.name();
        if HEADERS.get_ptr(name).is_some() {
            connection.request.machine.omit_line();
        }
        return;
    }
    if events.has(Events::HOST) {
        keep_host(connection, low_bytes(input.words[0], consumed));
        return;
    }
    if events.has(Events::HEAD) && !connection.is(Phase::Denied) {
        judge_head(walk, connection);
    }
    if events.has(Events::END) && connection.is(Phase::Denied) {
        connection.request.complete = 1;
        connection.request.stopped = 1;
    }
    if events.has(Events::OPAQUE) {
        // What follows a denied request is on its way to nobody.
        if !connection.is(Phase::Denied) {
            count(if events.has(Events::UPGRADED) {
                Fail::Upgraded
            } else if events.has(Events::MALFORMED) {
                Fail::Malformed
            } else {
                Fail::NotHttp1
            });
        }
        end_reading(walk, connection);
        connection.request.stopped = 1;
    }
}

/// Keeps the beginning of the Host line; each call brings up to eight bytes, all but the last exactly eight.
#[inline(always)]
fn keep_host(connection: &mut Connection, text: u64) {
    let at = connection.host_len / 8;
    if at >= (HOST_LEN / 8) as u64 {
        return;
    }
    connection.host[at as usize & (HOST_LEN / 8 - 1)] = text;
    connection.host_len += 8;
}

#[inline(always)]
fn end_reading(walk: &Walk, connection: &mut Connection) {
    connection.request.complete = 1;
    if !connection.is(Phase::Denied) {
        record::opaque(connection, walk.config, walk.now_ms);
    }
}

/// The head of a request is complete: this is where its fate is decided.
#[inline(always)]
fn judge_head(walk: &Walk, connection: &mut Connection) {
    let (now_ms, config) = (walk.now_ms, walk.config);
    let fingerprint = connection.request.machine.fingerprint(connection.edge_hash);
    let Some(edge) = EdgeRef::find(&mut connection.edge, now_ms, connection.process) else { return };
    let Some(policy) = policy(connection, config) else { return };
    let bench = Bench { config, policy, edge, now_ms };
    let turn = connection.ask(walk.ack);
    note_request(connection, edge, turn, now_ms);
    let evidence = evidence(&bench, connection, fingerprint);
    let covered = match connection.connect_charged {
        charged::NO => bench.charge(connection, evidence),
        before => before == charged::COVERED,
    };
    connection.connect_charged = charged::NO;
    let mut verdict = bench.verdict(covered, connection.is_clean(turn));
    if matches!(verdict, Verdict::Deny | Verdict::WouldDeny) && connection.covered == 0 {
        edge.count(EdgeCounter::Uncovered);
        emit(&connection.edge, EventKind::Uncovered, now_ms, connection.process);
        verdict = Verdict::Pass;
    }
    match verdict {
        Verdict::Deny => {
            edge.count(EdgeCounter::HttpDenied);
            bench.give_back(fingerprint);
            connection.phase = Phase::Denied as u8;
            // The client waits for a word before it sends the body: the denial is that word.
            connection.request.complete = connection.request.machine.expects() as u32;
            return;
        }
        Verdict::WouldDeny => edge.count(EdgeCounter::HttpWouldDeny),
        Verdict::Spare => edge.count(EdgeCounter::Spared),
        Verdict::Pass => {}
    }
    if !matches!(turn, Turn::Pipelined) {
        connection.await_answer(walk.ack, fingerprint);
    }
}

#[inline(always)]
fn note_request(connection: &mut Connection, edge: EdgeRef, turn: Turn, now_ms: u64) {
    connection.counted = 1;
    edge.touch(now_ms);
    edge.count(EdgeCounter::HttpAttempts);
    edge.note_host(connection, now_ms);
    connection.host_len = 0;
    match turn {
        Turn::Own => {}
        Turn::Pipelined => edge.count(EdgeCounter::Pipelined),
        Turn::Lost => count(Fail::LostSync),
    }
}

/// The strongest evidence counts, once.
#[inline(always)]
fn evidence(bench: &Bench, connection: &mut Connection, fingerprint: u64) -> Evidence {
    let connect = Evidence::from_u8(connection.connect_evidence);
    connection.connect_evidence = Evidence::None as u8;
    let evidence = match bench.evidence(fingerprint, Evidence::Repetition) {
        Evidence::None => connect,
        found => found,
    };
    match evidence {
        Evidence::None => {}
        Evidence::Connection => bench.edge.count(EdgeCounter::HttpConnection),
        Evidence::Repetition => bench.edge.count(EdgeCounter::HttpRepetition),
    }
    evidence
}
