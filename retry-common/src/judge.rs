//! From evidence and budget to a verdict. Observe, dry run and enforce differ in the last `match` only.
use crate::abi::Mode;
use crate::recogniser::Evidence;

/// A silent agent stops denials after this long, ms.
pub const HEARTBEAT_MS: u64 = 2_000;

/// What becomes of an attempt.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It goes on.
    Pass = 0,
    /// It goes on; enforce mode would have denied it.
    WouldDeny = 1,
    /// It is an excess retry, but a denial would not be clean here, nor be one in a dry run: it goes on and is
    /// counted.
    Spare = 2,
    /// It is answered in the kernel.
    Deny = 3,
}

/// Whether an attempt with this evidence is charged to the budget (and may be denied) at all.
#[inline(always)]
pub const fn is_charged(evidence: Evidence, act_on: Evidence) -> bool {
    // An `act_on` of none would charge originals; first attempts are never denied.
    evidence as u8 >= act_on as u8 && !matches!(evidence, Evidence::None)
}

/// The verdict on an attempt. `covered_by_budget`: [`crate::budget::Budget::retry`]'s answer, true for
/// attempts that are not charged. `clean`: a denial would reach the application as an ordinary answer.
#[inline(always)]
pub const fn judge(mode: Mode, covered_by_budget: bool, clean: bool) -> Verdict {
    if covered_by_budget {
        return Verdict::Pass;
    }
    match (mode, clean) {
        (Mode::Observe, _) => Verdict::Pass,
        (_, false) => Verdict::Spare,
        (Mode::DryRun, true) => Verdict::WouldDeny,
        (Mode::Enforce, true) => Verdict::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn originals_are_never_charged() {
        for act_on in [Evidence::None, Evidence::Connection, Evidence::Repetition] {
            assert!(!is_charged(Evidence::None, act_on));
        }
        assert!(is_charged(Evidence::Repetition, Evidence::Connection));
        assert!(!is_charged(Evidence::Connection, Evidence::Repetition));
    }

    #[test]
    fn verdict_table() {
        let rows = [
            ("a covered retry passes in enforce mode", Mode::Enforce, true, true, Verdict::Pass),
            ("an excess retry is denied", Mode::Enforce, false, true, Verdict::Deny),
            ("where a denial would not be clean it passes", Mode::Enforce, false, false, Verdict::Spare),
            ("dry run only says so", Mode::DryRun, false, true, Verdict::WouldDeny),
            ("nor does dry run say it would deny there", Mode::DryRun, false, false, Verdict::Spare),
            ("observe passes everything", Mode::Observe, false, true, Verdict::Pass),
        ];
        for (sentence, mode, covered, clean, verdict) in rows {
            assert_eq!(judge(mode, covered, clean), verdict, "{sentence}");
        }
    }
}
