//! One attempt: is it a retry, does the budget cover it, what becomes of it.
use super::credit;
use super::edge::EdgeRef;
use crate::fail::count;
use retry_common::abi::{Config, Connection, Fail, Mode, Policy};
use retry_common::judge::{HEARTBEAT_MS, Verdict, is_charged, judge};
use retry_common::recogniser::{CONNECT_FINGERPRINT, Evidence};

/// The instant and the rules under which attempts are judged.
#[derive(Clone, Copy)]
pub struct Bench {
    /// The settings.
    pub config: &'static Config,
    /// The edge's policy.
    pub policy: &'static Policy,
    /// The edge.
    pub edge: EdgeRef,
    /// Now.
    pub now_ms: u64,
}

/// How a connect stands to the budget: [`Connection::connect_charged`].
pub mod charged {
    /// Nothing was asked of the budget.
    pub const NO: u8 = 0;
    /// The budget covers it.
    pub const COVERED: u8 = 1;
    /// The budget does not; it passed all the same.
    pub const EXCESS: u8 = 2;
}

impl Bench {
    /// The evidence that a connect or request with this fingerprint is a retry; its credit is used.
    #[inline(always)]
    pub fn evidence(&self, fingerprint: u64, found: Evidence) -> Evidence {
        if self.edge.has_failed(self.now_ms, self.config.window_ms)
            && credit::withdraw(fingerprint, self.now_ms, self.config.window_ms)
        {
            return found;
        }
        Evidence::None
    }

    /// Charges an attempt to the edge's budget; false if it is an excess retry.
    #[inline(always)]
    pub fn charge(&self, connection: &Connection, evidence: Evidence) -> bool {
        if connection.limited == 0 {
            return true;
        }
        if matches!(evidence, Evidence::None) {
            self.edge.original(&self.policy.rules, self.now_ms);
            return true;
        }
        if !is_charged(evidence, Evidence::from_u8(self.policy.act_on)) {
            return true;
        }
        self.edge.retry(&self.policy.rules, self.now_ms)
    }

    /// The verdict; a silent agent denies nothing.
    #[inline(always)]
    pub fn verdict(&self, covered: bool, clean: bool) -> Verdict {
        let mut verdict = judge(Mode::from_u8(self.policy.mode), covered, clean);
        if matches!(verdict, Verdict::Deny)
            && self.now_ms.saturating_sub(self.config.heartbeat_ms) > HEARTBEAT_MS
        {
            count(Fail::StaleHeartbeat);
            verdict = Verdict::Spare;
        }
        verdict
    }

    /// A denied attempt has failed too: it explains the next one.
    #[inline(always)]
    pub fn give_back(&self, fingerprint: u64) {
        credit::deposit(fingerprint, self.now_ms, self.config.window_ms);
        self.edge.fail(self.now_ms);
    }
}

/// Fingerprint of an edge's connects.
#[inline(always)]
pub fn connect_fingerprint(connection: &Connection) -> u64 {
    connection.edge_hash ^ CONNECT_FINGERPRINT
}
