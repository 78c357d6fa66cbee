//! What did not work is counted, never silently dropped.
use crate::maps::FAILS;
use aya_ebpf::EbpfContext;
use aya_log_ebpf::debug;
use retry_common::abi::Fail;

/// Counts one.
#[inline(always)]
pub fn count(fail: Fail) {
    if let Some(counter) = FAILS.get_ptr_mut(fail as u32) {
        // SAFETY: the slot belongs to this CPU. A program that interrupts this one between load and store may
        // lose a count of 1, which a statistic can bear; an atomic add would cost every packet more.
        unsafe { *counter += 1 };
    }
}

/// Counts a packet or connection that its hook passed unread, and says so to whoever listens (`RUST_LOG=debug`).
#[inline(never)]
pub fn passed<C: EbpfContext>(ctx: &C, hook: &str, fail: Fail) {
    count(fail);
    debug!(ctx, "{}: passed unread: {}", hook, fail.label());
}
