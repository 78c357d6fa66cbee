//! What the agent tells the kernel: global settings, policies and the denials' bytes.
use super::counter::FAILURE_STATUSES;
use crate::budget::Rules;
use crate::http1::FILTER_WORDS;

/// Places for policies; id 0 is the default policy, the last one is [`OVERFLOW_POLICY`].
pub const MAX_POLICIES: u32 = 256;
/// The policy of the overflow edge: never written, so it observes. A budget there would be shared by edges that
/// have nothing in common.
pub const OVERFLOW_POLICY: u32 = MAX_POLICIES - 1;
/// Most bytes of a denial.
pub const ANSWER_LEN: usize = 256;

/// What becomes of a retry that the budget does not cover.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// It passes and is counted as a retry.
    #[default]
    Observe = 0,
    /// It passes and is counted as one that would have been denied.
    DryRun = 1,
    /// It is answered in the kernel.
    Enforce = 2,
}

impl Mode {
    /// The mode with this number; unknown numbers observe.
    #[inline(always)]
    pub const fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::DryRun,
            2 => Self::Enforce,
            _ => Self::Observe,
        }
    }

    /// Name as written in configuration.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::DryRun => "dry-run",
            Self::Enforce => "enforce",
        }
    }
}

/// How the retries of an edge are treated.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// A [`Mode`].
    pub mode: u8,
    /// Least [`crate::recogniser::Evidence`] that is charged to the budget and may be denied.
    pub act_on: u8,
    /// Zero.
    pub reserved: [u8; 6],
    /// The budget.
    pub rules: Rules,
}
const _: () = assert!(size_of::<Policy>() == 40);

/// Settings of the whole node.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Last sign of life of the agent, in ms of the monotonic clock. Nothing new is denied when it is older
    /// than [`crate::judge::HEARTBEAT_MS`].
    pub heartbeat_ms: u64,
    /// How long a failure may explain a repetition, in ms.
    pub window_ms: u64,
    /// Raised by the agent after it changed ASSIGNMENTS: connections look up their policy anew.
    pub generation: u32,
    /// Zero.
    pub reserved: u32,
    /// One bit per status 0..1024: is it a failure?
    pub failure_bits: [u64; 16],
    /// The same statuses as a list, unused places 0: positions of the counters in [`super::Edge::statuses`].
    pub failure_statuses: [u16; FAILURE_STATUSES],
    /// [`crate::http1::filter`] of the volatile header names.
    pub header_filter: [u64; FILTER_WORDS],
}
const _: () = assert!(size_of::<Config>() == 24 + 128 + 32 + 128);

impl Config {
    /// Settings with these failure statuses (at most [`FAILURE_STATUSES`] count) and window.
    pub fn new(window_ms: u64, failure_statuses: &[u16]) -> Self {
        let mut config = Self {
            heartbeat_ms: 0,
            window_ms,
            generation: 0,
            reserved: 0,
            failure_bits: [0; 16],
            failure_statuses: [0; FAILURE_STATUSES],
            header_filter: crate::http1::filter(crate::http1::VOLATILE),
        };
        for (place, status) in config.failure_statuses.iter_mut().zip(failure_statuses) {
            *place = *status;
            config.failure_bits[usize::from(*status >> 6) & 15] |= 1 << (*status & 63);
        }
        config
    }

    /// Whether an answer with this status is a failed attempt.
    #[inline(always)]
    pub fn is_failure(&self, status: u16) -> bool {
        (self.failure_bits[(status as usize >> 6) & 15] >> (status & 63)) & 1 == 1
    }

    /// Position of a failure status among the counters.
    #[inline(always)]
    pub fn position(&self, status: u16) -> Option<usize> {
        let mut at = 0;
        while at < FAILURE_STATUSES {
            if self.failure_statuses[at] == status {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}

/// The bytes of a denial under one policy.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Bytes in use, 1..=[`ANSWER_LEN`].
    pub len: u32,
    /// Zero.
    pub reserved: u32,
    /// The answer.
    pub bytes: [u8; ANSWER_LEN],
}
const _: () = assert!(size_of::<Answer>() == 8 + ANSWER_LEN);
