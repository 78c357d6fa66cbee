//! Is this attempt a retry? By evidence, and never more retries than there were failures.
//!
//! Each failed attempt leaves one credit under its fingerprint; a repetition of the fingerprint within the
//! window uses one. n failures can so never explain more than n retries, whoever sends them. The credits of
//! one fingerprint are one word, changed by compare-and-swap: time of the last failure (ms, 48 bits) and
//! credits (16 bits).

/// Why an attempt is called a retry, weakest first.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Evidence {
    /// None: an original.
    #[default]
    None = 0,
    /// A connect after a failed one to the same destination by the same workload.
    Connection = 1,
    /// The same request after a failed attempt of it.
    Repetition = 2,
}

impl Evidence {
    /// The evidence with this number; unknown numbers are none.
    #[inline(always)]
    pub const fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Connection,
            2 => Self::Repetition,
            _ => Self::None,
        }
    }

    /// Name as used in labels and configuration.
    pub const fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Connection => "connection",
            Self::Repetition => "repetition",
        }
    }
}

/// Fingerprint under which failed connects of an edge leave their credits.
pub const CONNECT_FINGERPRINT: u64 = 0x636f_6e6e_6563_7421;

const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Credits of one fingerprint.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Credits(pub u64);

impl Credits {
    /// One more failure at `now`. Credits older than the window are forgotten first.
    #[inline(always)]
    #[must_use]
    pub fn deposit(self, now_ms: u64, window_ms: u64) -> Self {
        let count = self.count(now_ms, window_ms);
        let count = if count == COUNT_MASK { count } else { count + 1 };
        Self((now_ms << COUNT_BITS) | count)
    }

    /// The credits after one was used, or nothing if there is none within the window.
    #[inline(always)]
    #[must_use]
    pub fn withdraw(self, now_ms: u64, window_ms: u64) -> Option<Self> {
        if self.count(now_ms, window_ms) == 0 { None } else { Some(Self(self.0 - 1)) }
    }

    /// Credits that are still good at `now`. A clock that went back counts as standing still.
    #[inline(always)]
    fn count(self, now_ms: u64, window_ms: u64) -> u64 {
        let failed_ms = self.0 >> COUNT_BITS;
        if now_ms.saturating_sub(failed_ms) > window_ms { 0 } else { self.0 & COUNT_MASK }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_failure_explains_one_repetition() {
        let credits = Credits::default().deposit(1_000, 60_000);
        let rest = credits.withdraw(1_500, 60_000).expect("within the window");
        assert_eq!(rest.withdraw(1_500, 60_000), None);
    }

    #[test]
    fn the_window_ends() {
        let credits = Credits::default().deposit(1_000, 60_000);
        assert!(credits.withdraw(61_000, 60_000).is_some(), "the last millisecond still counts");
        assert!(credits.withdraw(61_001, 60_000).is_none());
    }

    #[test]
    fn old_credits_are_forgotten_at_the_next_failure() {
        let credits = Credits::default().deposit(0, 10).deposit(0, 10).deposit(100, 10);
        let rest = credits.withdraw(100, 10).expect("the fresh one");
        assert_eq!(rest.withdraw(100, 10), None);
    }

    #[test]
    fn the_count_stops_at_its_end() {
        let mut credits = Credits((5 << COUNT_BITS) | COUNT_MASK);
        credits = credits.deposit(5, 10);
        assert_eq!(credits.0 & COUNT_MASK, COUNT_MASK);
    }

    proptest! {
        #[test]
        fn never_more_retries_than_failures(
            acts in proptest::collection::vec((0_u64..500, any::<bool>()), 1..200), window in 1_u64..2_000,
        ) {
            let (mut credits, mut now, mut failures, mut retries) = (Credits::default(), 0, 0, 0);
            for (gap, fails) in acts {
                now += gap;
                if fails {
                    credits = credits.deposit(now, window);
                    failures += 1;
                } else if let Some(rest) = credits.withdraw(now, window) {
                    credits = rest;
                    retries += 1;
                }
                prop_assert!(retries <= failures);
            }
        }

        #[test]
        fn any_word_is_harmless(word: u64, now: u64, window: u64) {
            let credits = Credits(word);
            let _ = credits.deposit(now, window).withdraw(now, window);
            let _ = credits.withdraw(now, window);
        }
    }
}
