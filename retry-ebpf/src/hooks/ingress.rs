//! `cgroup_skb/ingress`: a packet reaches a socket of the cgroup. Always returns 1.
//!
//! Runs in softirq before TCP has put the packet in its place, so it may be a repetition or early: only bytes
//! that continue what was read count. Cost on a connection that waits for nothing: one storage look-up.
use crate::fail::{count, passed};
use crate::packet::{self, Headers, Read};
use crate::socket::{now_ms, of_packet};
use crate::stages::edge::config;
use crate::stages::record;
use crate::stages::window::{MOST_STEPS, Shown, Window};
use aya_ebpf::helpers::generated::bpf_loop;
use aya_ebpf::macros::cgroup_skb;
use aya_ebpf::programs::SkBuffContext;
use core::ffi::c_void;
use retry_common::abi::{Config, Connection, Fail, Phase, names};
use retry_common::http1::Events;
use retry_common::tcp::{Place, flag, place};

/// A packet arrives.
#[cgroup_skb(ingress)]
pub fn read_answer(ctx: SkBuffContext) -> i32 {
    if let Err(fail) = try_read(&ctx) {
        passed(&ctx, names::INGRESS, fail);
    }
    1
}

#[inline(always)]
fn try_read(ctx: &SkBuffContext) -> Result<(), Fail> {
    // SAFETY: a context field.
    let Some(connection) = of_packet(unsafe { (*ctx.skb.skb).__bindgen_anon_2.sk }) else { return Ok(()) };
    if connection.is(Phase::Denied) {
        return Ok(());
    }
    let headers = match packet::read(ctx.skb.skb, 0) {
        Read::Tcp(headers) => headers,
        Read::Other => return Ok(()),
        Read::Unusual | Read::Short => return Err(Fail::Headers),
    };
    if headers.segment.has(flag::RST) {
        connection.saw_reset = 1;
        return Ok(());
    }
    if headers.segment.len != 0 {
        connection.received = 1;
        if connection.reads_answer() {
            read_data(ctx, connection, &headers)?;
        }
    }
    if headers.segment.has(flag::FIN) {
        connection.saw_fin = 1;
    }
    Ok(())
}

/// Reads what continues the answer.
#[inline(always)]
fn read_data(ctx: &SkBuffContext, connection: &mut Connection, headers: &Headers) -> Result<(), Fail> {
    let Some(config) = config() else { return Ok(()) };
    let segment = &headers.segment;
    let skip = match place(connection.answer.next, segment.seq, segment.len) {
        Place::Old => return Ok(()),
        Place::New { skip } => skip,
        Place::Gap(missing) => {
            // Body that came out of order may be passed over; for anything else the repetition is waited for.
            if !connection.answer.machine.pass_over(missing) {
                return Err(Fail::LostSync);
            }
            0
        }
    };
    let end = headers.data_at + segment.len;
    let window = Window::new(ctx.skb.skb, &mut connection.answer, headers.data_at + skip, end);
    let mut walk = Walk { window, connection, config };
    // SAFETY: the callback gets the address of `walk`, which outlives the loop.
    unsafe { bpf_loop(MOST_STEPS, step as *const () as *mut c_void, (&raw mut walk).cast(), 0) };
    // SAFETY: the walk's own pointer to the storage, back from the callback.
    let connection = unsafe { &mut *walk.connection };
    connection.answer.next = segment.seq.wrapping_add(segment.len);
    if connection.answer.stopped == 0 {
        // The end of this answer will not be seen, so nothing is denied behind it.
        connection.tracking = 0;
        return Err(Fail::TooManySteps);
    }
    Ok(())
}

/// What a walk through one packet carries along.
struct Walk {
    window: Window,
    connection: *mut Connection,
    config: &'static Config,
}

/// One step of the walk; 1 ends it.
extern "C" fn step(_index: u64, walk: *mut Walk) -> i64 {
    // SAFETY: `read_data`'s own.
    let walk = unsafe { &mut *walk };
    // SAFETY: socket storage.
    let connection = unsafe { &mut *walk.connection };
    let input = match walk.window.show() {
        Shown::Bytes(input) => input,
        Shown::Done => return stop(connection),
        Shown::Failed => {
            count(Fail::ReadFailed);
            connection.awaiting = 0;
            connection.tracking = 0;
            return stop(connection);
        }
    };
    let step = connection.answer.machine.answer_step(&input, &walk.config.header_filter);
    if step.consumed == 0 && step.events == Events::NONE {
        walk.window.carry(&input);
        return stop(connection);
    }
    walk.window.take(step.consumed);
    if step.events != Events::NONE {
        handle(walk, connection, step.events);
    }
    i64::from(connection.answer.stopped & 1)
}

#[inline(always)]
fn stop(connection: &mut Connection) -> i64 {
    connection.answer.stopped = 1;
    1
}

#[inline(always)]
fn handle(walk: &Walk, connection: &mut Connection, events: Events) {
    let status = connection.answer.machine.status();
    if events.has(Events::STATUS) && (status == 101 || status >= 200) {
        record::status(connection, walk.config, now_ms(), status);
        if connection.tracking == 0 && status != 101 {
            connection.answer.stopped = 1;
            return;
        }
    }
    if events.has(Events::END) {
        connection.settled = 1;
        connection.answer.stopped = 1;
    }
    if events.has(Events::OPAQUE) {
        connection.answer.stopped = 1;
        if events.has(Events::UPGRADED) {
            count(Fail::Upgraded);
            record::opaque(connection, walk.config, now_ms());
            return;
        }
        // Most likely the middle of an answer whose successor was asked for before its end.
        count(Fail::Malformed);
        connection.lose_answers();
    }
}
