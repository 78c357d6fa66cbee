//! The credits that failures leave and repetitions use.
use crate::atomic::replace;
use crate::fail::count;
use crate::maps::FAILURES;
use aya_ebpf::bindings::BPF_NOEXIST;
use retry_common::abi::Fail;
use retry_common::recogniser::Credits;

/// Tries before contention is given way to; CPUs meet on one fingerprint only in a storm.
const TRIES: usize = 4;

/// A failure under this fingerprint.
#[inline(never)]
pub fn deposit(fingerprint: u64, now_ms: u64, window_ms: u64) {
    let mut tries = 0;
    while tries < TRIES {
        tries += 1;
        let Some(word) = FAILURES.get_ptr_mut(fingerprint) else {
            let first = Credits::default().deposit(now_ms, window_ms);
            if FAILURES.insert(fingerprint, first.0, u64::from(BPF_NOEXIST)).is_ok() {
                return;
            }
            continue;
        };
        // SAFETY: a word of a map value.
        let old = unsafe { core::ptr::read_volatile(word) };
        // SAFETY: as above.
        if unsafe { replace(word, old, Credits(old).deposit(now_ms, window_ms).0) } {
            return;
        }
    }
    count(Fail::Contended);
}

/// Whether a failure under this fingerprint explains a repetition now; it is used up then.
#[inline(never)]
pub fn withdraw(fingerprint: u64, now_ms: u64, window_ms: u64) -> bool {
    let Some(word) = FAILURES.get_ptr_mut(fingerprint) else { return false };
    let mut tries = 0;
    while tries < TRIES {
        tries += 1;
        // SAFETY: a word of a map value.
        let old = unsafe { core::ptr::read_volatile(word) };
        let Some(rest) = Credits(old).withdraw(now_ms, window_ms) else { return false };
        // SAFETY: as above.
        if unsafe { replace(word, old, rest.0) } {
            return true;
        }
    }
    count(Fail::Contended);
    false
}
