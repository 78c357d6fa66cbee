//! `share`: retries are at most a share of the originals in a rolling window.
//!
//! ```text
//!   slots of window/30:    |cur-30|cur-29| …  |cur-1| cur |
//!   originals counted:             <----------------------  spans at most one window
//!   retries counted:       <------------------------------  spans at least one window
//! ```
//! So at no instant do the retries of the last window exceed the share of its originals (plus the floor):
//! the error of slicing always falls on the strict side. Source: the rolling form of the per-client 10 %
//! ratio in Google's SRE book, "Handling Overload".
use super::Rules;

/// Slots kept: a power of two, at least [`RETRY_SLOTS`].
pub const SLOTS: usize = 32;
/// Parts into which a window is cut, rounding their length up.
const PARTS: u64 = 30;
/// Slots whose retries count, the current one included: a window at least.
const RETRY_SLOTS: u64 = PARTS + 1;
/// Denominator of [`Rules::share`].
const WHOLE: u64 = 10_000;

/// Distance between the slot numbers of two epochs: more ms than any clock shows (550 years).
const EPOCH: u64 = 1 << 44;

/// Counts of one slice of time.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Slot {
    /// Which slice this is; one that lies outside the window is forgotten.
    number: u64,
    originals: u32,
    retries: u32,
}

/// The window, sliced.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Raised by [`EPOCH`] whenever the rules change, so that no older slot is near the new ones.
    epoch: u64,
    /// Number of the latest slot: epoch + time / slot length.
    current: u64,
    slots: [Slot; SLOTS],
}

impl Share {
    /// Nothing counted.
    pub(super) const EMPTY: Self =
        Self { epoch: 0, current: 0, slots: [Slot { number: 0, originals: 0, retries: 0 }; SLOTS] };

    #[inline(always)]
    pub(super) fn original(&mut self, rules: &Rules, now_ms: u64) {
        let slot = self.slot(rules, now_ms);
        slot.originals = slot.originals.wrapping_add(1);
    }

    #[inline(always)]
    pub(super) fn retry(&mut self, rules: &Rules, now_ms: u64) -> bool {
        self.slot(rules, now_ms);
        let (allowance, retries) = self.sums(rules);
        if (retries + 1) * WHOLE > allowance {
            return false;
        }
        let slot = self.slot(rules, now_ms);
        slot.retries = slot.retries.wrapping_add(1);
        true
    }

    /// Thousandths of retries that may still pass.
    pub(super) fn balance(&mut self, rules: &Rules, now_ms: u64) -> u64 {
        self.slot(rules, now_ms);
        let (allowance, retries) = self.sums(rules);
        allowance.saturating_sub(retries * WHOLE) / (WHOLE / 1000)
    }

    /// The slot of now, emptied if it was that of another slice.
    #[inline(always)]
    fn slot(&mut self, rules: &Rules, now_ms: u64) -> &mut Slot {
        let number = self.epoch.wrapping_add(now_ms / length(rules) % EPOCH);
        if number > self.current {
            self.current = number;
        }
        let slot = &mut self.slots[self.current as usize % SLOTS];
        if slot.number != self.current {
            *slot = Slot { number: self.current, originals: 0, retries: 0 };
        }
        slot
    }

    /// Retries covered by the window's originals, in units of 1/[`WHOLE`], and the retries of the window.
    ///
    /// Masks instead of branches: the kernel's verifier walks through every path.
    #[inline(always)]
    fn sums(&self, rules: &Rules) -> (u64, u64) {
        let span = rules.window_ms / length(rules);
        let (mut originals, mut retries, mut at) = (0_u64, 0_u64, 0);
        while at < SLOTS {
            let slot = &self.slots[at];
            let age = self.current.wrapping_sub(slot.number);
            originals += slot.originals as u64 & below(age, span);
            retries += slot.retries as u64 & below(age, RETRY_SLOTS);
            at += 1;
        }
        (originals.wrapping_mul(rules.share as u64).wrapping_add(rules.floor as u64 * WHOLE), retries)
    }

    /// Forgets everything.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.epoch = self.epoch.wrapping_add(EPOCH);
        self.current = self.epoch;
    }
}

/// Length of a slot, ms.
#[inline(always)]
const fn length(rules: &Rules) -> u64 {
    let length = rules.window_ms / PARTS + !rules.window_ms.is_multiple_of(PARTS) as u64;
    if length == 0 { 1 } else { length }
}

/// All ones if `age` is below `span`, both below 2^63; otherwise 0.
#[inline(always)]
const fn below(age: u64, span: u64) -> u64 {
    ((age.wrapping_sub(span) as i64) >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::super::Budget;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const TEN_PERCENT: Rules = Rules::share(1000, 60_000, 0);

    /// 100 originals/s for 60 s, each failing at once, two retries wanted: the oracle's scenario.
    #[test]
    fn total_outage_stays_at_ten_percent() {
        let mut budget = Budget::default();
        let mut passed = 0;
        for now in (0..60_000).step_by(10) {
            budget.original(&TEN_PERCENT, now);
            for _ in 0..2 {
                passed += u64::from(budget.retry(&TEN_PERCENT, now));
            }
        }
        assert_eq!(passed, 600, "6000 originals, 10 % of them");
    }

    #[test]
    fn floor_lets_the_first_retries_pass_without_originals() {
        let rules = Rules::share(1000, 60_000, 3);
        let mut budget = Budget::default();
        let passed = (0..10).filter(|_| budget.retry(&rules, 5)).count();
        assert_eq!(passed, 3);
    }

    #[test]
    fn originals_leave_the_window() {
        let mut budget = Budget::default();
        for _ in 0..100 {
            budget.original(&TEN_PERCENT, 1_000);
        }
        assert!(budget.retry(&TEN_PERCENT, 50_000));
        assert!(!budget.retry(&TEN_PERCENT, 61_001 + 2_000), "they are older than a window");
    }

    proptest! {
        /// The law: at each retry let through, the retries of the last window (it included) are at most
        /// the share of that window's originals plus the floor.
        #[test]
        fn never_over_in_any_window(
            share in 0_u32..=10_000, window in 30_u64..5_000, floor in 0_u32..4,
            acts in proptest::collection::vec((0_u64..400, 0_u32..3), 1..400),
        ) {
            let rules = Rules::share(share, window, floor);
            let mut budget = Budget::default();
            let (mut originals, mut retries) = (Vec::new(), Vec::new());
            let mut now = 500_000;
            for (gap, act) in acts {
                now += gap * u64::from(act == 0);
                if act == 1 {
                    budget.original(&rules, now);
                    originals.push(now);
                } else if budget.retry(&rules, now) {
                    retries.push(now);
                    let inside = |times: &Vec<u64>| times.iter().filter(|time| **time + window > now).count() as u64;
                    prop_assert!(
                        inside(&retries) * WHOLE <= inside(&originals) * u64::from(share) + u64::from(floor) * WHOLE
                    );
                }
            }
        }

        /// Recall: it gives what is due for originals that are certainly inside the window.
        #[test]
        fn gives_what_is_due(originals in 0_u32..500, share in 0_u32..=10_000) {
            let rules = Rules::share(share, 60_000, 0);
            let mut budget = Budget::default();
            for _ in 0..originals {
                budget.original(&rules, 10_000);
            }
            let due = u64::from(originals) * u64::from(share) / WHOLE;
            let passed = (0..1000).filter(|_| budget.retry(&rules, 40_000)).count() as u64;
            prop_assert_eq!(passed, due);
        }

        #[test]
        fn order_of_deposits_does_not_matter(times in proptest::collection::vec(0_u64..1_900, 1..60)) {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let balance = |times: &[u64]| {
                let mut budget = Budget::default();
                times.iter().for_each(|time| budget.original(&TEN_PERCENT, 600_000 + time));
                budget.balance(&TEN_PERCENT, 602_000)
            };
            prop_assert_eq!(balance(&times), balance(&sorted));
        }
    }
}
