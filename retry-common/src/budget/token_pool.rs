//! `token_pool`: retries take tokens; a success brings in what time has earned since the last refill.
//!
//! While nothing succeeds nothing is refilled, so an outage costs `capacity` retries and no more, however
//! long it lasts.
use super::Rules;

/// Parts of a token.
const PARTS: u64 = 1000;

/// A pool of tokens.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenPool {
    /// Whole tokens.
    tokens: u64,
    /// Up to when time was turned into tokens, ms.
    refilled_ms: u64,
}

impl TokenPool {
    pub(super) const EMPTY: Self = Self { tokens: 0, refilled_ms: 0 };

    #[inline(always)]
    pub(super) fn full(rules: &Rules, now_ms: u64) -> Self {
        Self { tokens: rules.capacity as u64, refilled_ms: now_ms }
    }

    /// Whole tokens are earned by the time since the last refill; what is left of a token goes on growing.
    #[inline(always)]
    pub(super) fn success(&mut self, rules: &Rules, now_ms: u64) {
        let capacity = rules.capacity as u64;
        if rules.refill == 0 || now_ms <= self.refilled_ms {
            return;
        }
        let elapsed_ms = now_ms - self.refilled_ms;
        // A day's worth fills any pool; the bound keeps the product below u64::MAX.
        let elapsed_ms = if elapsed_ms > 86_400_000 { 86_400_000 } else { elapsed_ms };
        let earned = elapsed_ms.wrapping_mul(rules.refill) / (1000 * PARTS);
        if earned == 0 {
            return;
        }
        if earned >= capacity - self.tokens {
            self.tokens = capacity;
            self.refilled_ms = now_ms;
        } else {
            self.tokens += earned;
            self.refilled_ms += earned * (1000 * PARTS) / rules.refill;
        }
    }

    #[inline(always)]
    pub(super) fn retry(&mut self) -> bool {
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }

    /// Thousandths of retries that may still pass.
    pub(super) fn balance(&self) -> u64 {
        self.tokens * PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::super::Budget;
    use super::*;
    use proptest::prelude::*;

    const SEED: Rules = Rules::token_pool(25, 1000);

    #[test]
    fn total_outage_costs_the_capacity_and_no_more() {
        let mut budget = Budget::default();
        let mut passed = 0;
        for now in (0..60_000).step_by(10) {
            budget.original(&SEED, now);
            for _ in 0..2 {
                passed += u64::from(budget.retry(&SEED, now));
            }
        }
        assert_eq!(passed, 25);
    }

    #[test]
    fn only_a_success_refills() {
        let mut budget = Budget::default();
        (0..25).for_each(|_| assert!(budget.retry(&SEED, 0)));
        assert!(!budget.retry(&SEED, 10_000), "ten seconds without a success earn nothing");
        budget.success(&SEED, 10_000);
        assert_eq!((0..20).filter(|_| budget.retry(&SEED, 10_000)).count(), 10);
    }

    #[test]
    fn parts_of_a_token_are_not_lost() {
        let mut budget = Budget::default();
        (0..25).for_each(|_| assert!(budget.retry(&SEED, 0)));
        for now in (100..=10_000).step_by(700) {
            budget.success(&SEED, now);
        }
        budget.success(&SEED, 10_000);
        assert_eq!(budget.balance(&SEED, 10_000), Some(10_000));
    }

    proptest! {
        #[test]
        fn never_more_than_capacity_plus_what_time_earned(
            capacity in 0_u32..40, refill in 0_u64..3_000,
            acts in proptest::collection::vec((0_u64..2_000, any::<bool>()), 1..300),
        ) {
            let rules = Rules::token_pool(capacity, refill);
            let mut budget = Budget::default();
            budget.original(&rules, 0);
            let (mut now, mut passed) = (0, 0_u64);
            for (gap, success) in acts {
                now += gap;
                if success { budget.success(&rules, now) } else { passed += u64::from(budget.retry(&rules, now)) }
                prop_assert!(passed * 1_000_000 <= u64::from(capacity) * 1_000_000 + now * refill);
                prop_assert!(budget.balance(&rules, now).is_some_and(|balance| balance <= u64::from(capacity) * 1000));
            }
        }
    }
}
