//! Words of shared map values: the kernel runs these programs on all CPUs at once.
//!
//! `core::sync::atomic` offers the BPF target loads and stores only; the intrinsics below become the atomic
//! instructions of BPF (add since 3.18, compare-and-exchange since 5.12).
use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_xadd};

/// Adds one to a counter.
///
/// # Safety
/// `word` points into a map value that is alive for the rest of the program's run.
#[inline(always)]
pub unsafe fn increment(word: *mut u64) {
    // SAFETY: aligned (asserted sizes), alive by contract, and user space only reads it.
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(word, 1) };
}

/// Stores `new` if the word is still `old`.
///
/// # Safety
/// As [`increment`].
#[inline(always)]
pub unsafe fn replace(word: *mut u64, old: u64, new: u64) -> bool {
    // SAFETY: as in `increment`.
    unsafe { atomic_cxchg::<u64, { AtomicOrdering::SeqCst }, { AtomicOrdering::SeqCst }>(word, old, new).1 }
}
