//! Retry budgets: how many retries may follow how many originals.
//!
//! A budget sees originals ([`Budget::original`]), successes ([`Budget::success`]) and asks for retries
//! ([`Budget::retry`]). One state serves every algorithm, so that an edge may change its algorithm; which
//! one is at work say the [`Rules`]. All arithmetic is integer; times are ms of any clock that mostly goes
//! forward: a time in the past counts as now. Callers hold the lock of the edge.

mod share;
mod token_pool;

pub use share::{SLOTS, Share};
pub use token_pool::TokenPool;

/// Which algorithm.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// Every retry passes.
    #[default]
    Unlimited = 0,
    /// No retry passes: this layer does not retry.
    None = 1,
    /// Retries may be a share of the originals in a rolling window.
    Share = 2,
    /// Retries take tokens from a pool that only successes refill.
    TokenPool = 3,
}

impl Algorithm {
    /// The algorithm with this number; unknown numbers limit nothing.
    #[inline(always)]
    pub const fn from_u32(number: u32) -> Self {
        match number {
            1 => Self::None,
            2 => Self::Share,
            3 => Self::TokenPool,
            _ => Self::Unlimited,
        }
    }

    /// Name as written in configuration, metrics and the denial's header.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unlimited => "unlimited",
            Self::None => "none",
            Self::Share => "share",
            Self::TokenPool => "token_pool",
        }
    }
}

/// An algorithm with its parameters. Two budgets with equal rules behave alike.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// An [`Algorithm`].
    pub algorithm: u32,
    /// `share`: retries per 10,000 originals.
    pub share: u32,
    /// `share`: retries per window that need no original.
    pub floor: u32,
    /// `token_pool`: most tokens, also the balance at the start.
    pub capacity: u32,
    /// `share`: length of the window, ms.
    pub window_ms: u64,
    /// `token_pool`: thousandths of a token per second.
    pub refill: u64,
}

impl Rules {
    /// Every retry passes.
    pub const UNLIMITED: Self = Self::of(Algorithm::Unlimited);
    /// No retry passes.
    pub const NONE: Self = Self::of(Algorithm::None);

    const fn of(algorithm: Algorithm) -> Self {
        Self { algorithm: algorithm as u32, share: 0, floor: 0, capacity: 0, window_ms: 0, refill: 0 }
    }

    /// `share` of 10,000 originals in a rolling window, and `floor` retries on top.
    pub const fn share(share: u32, window_ms: u64, floor: u32) -> Self {
        Self { share, window_ms, floor, ..Self::of(Algorithm::Share) }
    }

    /// A pool of `capacity` tokens, refilled by `refill` thousandths per second on success.
    pub const fn token_pool(capacity: u32, refill: u64) -> Self {
        Self { capacity, refill, ..Self::of(Algorithm::TokenPool) }
    }

    /// The algorithm.
    #[inline(always)]
    pub const fn algorithm(&self) -> Algorithm {
        Algorithm::from_u32(self.algorithm)
    }
}

/// State of one budget; all zero before its first use.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The rules under which the state below came to be.
    rules: Rules,
    share: Share,
    pool: TokenPool,
}

impl Default for Budget {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Budget {
    /// One that was never used.
    pub const EMPTY: Self = Self { rules: Rules::UNLIMITED, share: Share::EMPTY, pool: TokenPool::EMPTY };

    /// A first attempt goes out.
    #[inline(always)]
    pub fn original(&mut self, rules: &Rules, now_ms: u64) {
        self.adopt(rules, now_ms);
        if let Algorithm::Share = rules.algorithm() {
            self.share.original(rules, now_ms);
        }
    }

    /// An attempt succeeded.
    #[inline(always)]
    pub fn success(&mut self, rules: &Rules, now_ms: u64) {
        self.adopt(rules, now_ms);
        if let Algorithm::TokenPool = rules.algorithm() {
            self.pool.success(rules, now_ms);
        }
    }

    /// Whether one more retry may pass; if so, it is charged.
    #[inline(always)]
    pub fn retry(&mut self, rules: &Rules, now_ms: u64) -> bool {
        self.adopt(rules, now_ms);
        match rules.algorithm() {
            Algorithm::Unlimited => true,
            Algorithm::None => false,
            Algorithm::Share => self.share.retry(rules, now_ms),
            Algorithm::TokenPool => self.pool.retry(),
        }
    }

    /// Retries that would pass now, in thousandths; nothing where there is no limit.
    pub fn balance(&self, rules: &Rules, now_ms: u64) -> Option<u64> {
        let mut budget = *self;
        budget.adopt(rules, now_ms);
        match rules.algorithm() {
            Algorithm::Unlimited => None,
            Algorithm::None => Some(0),
            Algorithm::Share => Some(budget.share.balance(rules, now_ms)),
            Algorithm::TokenPool => Some(budget.pool.balance()),
        }
    }

    /// Starts afresh when the rules have changed (or at the first use).
    #[inline(always)]
    fn adopt(&mut self, rules: &Rules, now_ms: u64) {
        if self.rules.algorithm == rules.algorithm
            && self.rules.share == rules.share
            && self.rules.floor == rules.floor
            && self.rules.capacity == rules.capacity
            && self.rules.window_ms == rules.window_ms
            && self.rules.refill == rules.refill
        {
            return;
        }
        self.rules = *rules;
        self.share.clear();
        self.pool = TokenPool::full(rules, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARE: Rules = Rules::share(1000, 60_000, 0);
    const POOL: Rules = Rules::token_pool(25, 1000);

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Original,
        Success,
        Retry,
    }

    fn acts() -> impl Strategy<Value = std::vec::Vec<(u64, Act)>> {
        let act = prop_oneof![Just(Act::Original), Just(Act::Success), Just(Act::Retry)];
        proptest::collection::vec((0_u64..3_000, act), 1..400)
    }

    fn rules() -> impl Strategy<Value = Rules> {
        prop_oneof![
            Just(Rules::UNLIMITED),
            Just(Rules::NONE),
            (0_u32..20_000, 1_u64..100_000, 0_u32..5).prop_map(|(s, w, f)| Rules::share(s, w, f)),
            (0_u32..50, 0_u64..5_000).prop_map(|(c, r)| Rules::token_pool(c, r)),
        ]
    }

    proptest! {
        #[test]
        fn never_panics_whatever_the_times(
            rules in rules(), other in rules(), times in proptest::collection::vec(any::<u64>(), 0..50),
        ) {
            let mut budget = Budget::default();
            for (turn, time) in times.into_iter().enumerate() {
                let rules = if turn % 7 == 6 { &other } else { &rules };
                budget.original(rules, time);
                budget.retry(rules, time);
                budget.success(rules, time);
                budget.balance(rules, time);
            }
        }

        #[test]
        fn balance_tells_whether_a_retry_passes(rules in rules(), acts in acts()) {
            let mut budget = Budget::default();
            let mut now = 1_000_000;
            for (gap, act) in acts {
                now += gap;
                match act {
                    Act::Original => budget.original(&rules, now),
                    Act::Success => budget.success(&rules, now),
                    Act::Retry => {
                        let promised = budget.balance(&rules, now).is_none_or(|balance| balance >= 1000);
                        prop_assert_eq!(budget.retry(&rules, now), promised);
                    }
                }
            }
        }
    }

    #[test]
    fn changed_rules_start_afresh() {
        let mut budget = Budget::default();
        for _ in 0..25 {
            assert!(budget.retry(&POOL, 1));
        }
        assert!(!budget.retry(&POOL, 1));
        assert!(budget.retry(&Rules::UNLIMITED, 1));
        assert!(budget.retry(&POOL, 1), "the pool is full again after a change of rules");
        assert!(!budget.retry(&SHARE, 1), "no original, no retry");
    }

    #[test]
    fn none_lets_nothing_pass_and_unlimited_everything() {
        let mut budget = Budget::default();
        for now in 0..1000 {
            budget.original(&Rules::NONE, now);
            budget.success(&Rules::NONE, now);
            assert!(!budget.retry(&Rules::NONE, now));
        }
        for now in 0..1000 {
            assert!(budget.retry(&Rules::UNLIMITED, now));
        }
    }
}
