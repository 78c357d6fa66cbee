//! What a kernel test may rely on: the agent as a child, scripted servers, clients that nobody here wrote, raw
//! clients that say exactly what they saw, and guards for cgroups and network namespaces.
//!
//! Every test owns all it touches (port 0, fresh names), so tests may run side by side, and everything is gone
//! when its guard is dropped, also after a failed assertion.

pub mod agent;
pub mod answer;
pub mod cgroup;
pub mod client;
pub mod netns;
pub mod origin;
pub mod process;
pub mod require;
pub mod scrape;
pub mod wait;
pub mod wire;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A name that no other test uses, on any thread of any test process alive.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A path for a scratch file with a name of its own; its user removes it.
pub fn scratch_file(purpose: &str) -> PathBuf {
    std::env::temp_dir().join(unique(&format!("retry-tests-{purpose}-")))
}
