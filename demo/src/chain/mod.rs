//! Story 1, *81 calls for one click*: five services in a row, one HTTP client with three attempts at each of the
//! four boundaries, and a store that fails. Before: the agent observes. After: the inner layers do not retry
//! (budget `none`), the outermost one, which owns the retry, may add 10 %.
//!
//! The outermost service is the owner because it is nearest to the user: it alone knows whether the click is
//! still wanted, and one attempt of it repeats the whole chain exactly once.

mod phase;
mod verdict;

use anyhow::Result;

pub use self::phase::Phase;
pub use self::verdict::{checks, table};
use crate::cgroup::Cgroup;
use crate::place::Place;

/// The services, the outermost first; the last one calls nobody.
pub const SERVICES: [&str; 5] = ["gateway", "checkout", "orders", "pricing", "store"];

/// Boundaries between services, at each of which a call is attempted up to [`ATTEMPTS`] times.
pub const BOUNDARIES: u32 = SERVICES.len() as u32 - 1;

/// Attempts that each service's HTTP client makes at a call.
pub const ATTEMPTS: u32 = 3;

/// The service that owns the retry.
pub const OWNER: &str = "gateway";

/// The owner's budget: as a configuration says it, and in figures.
pub const OWNER_BUDGET: &str = "share=10%,window=60s";
pub const OWNER_SHARE: f64 = 0.10;

/// The story as it was seen.
pub struct Chain {
    /// Under an agent that only observes.
    pub before: Phase,
    /// With the caps.
    pub after: Phase,
}

/// Plays the story twice, on fresh services and a fresh agent each time.
///
/// # Errors
/// When a process fails, or the demo is interrupted.
pub fn run(place: &Place, top: &Cgroup) -> Result<Chain> {
    let before = phase::play(place, top, "chain-before", false)?;
    let after = phase::play(place, top, "chain-after", true)?;
    Ok(Chain { before, after })
}
