//! Ctrl-C: a flag that every wait of the demo looks at, so that an interrupted demo leaves by the same road as a
//! failed one, past the guards that end processes and remove cgroups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How often a wait looks at the flag.
pub const GLANCE: Duration = Duration::from_millis(50);

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The demo was told to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// From now on the usual signals ask the demo to stop instead of ending it.
///
/// # Errors
/// When a signal cannot be taken over.
pub fn watch() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&REQUESTED))
            .with_context(|| format!("cannot watch for signal {signal}"))?;
    }
    Ok(())
}

/// # Errors
/// [`Interrupted`] once a signal has come.
pub fn check() -> Result<(), Interrupted> {
    if REQUESTED.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
}

/// Waits one glance, or less if `until` comes first.
///
/// # Errors
/// [`Interrupted`] once a signal has come.
pub fn glance(until: Instant) -> Result<(), Interrupted> {
    check()?;
    thread::sleep(GLANCE.min(until.saturating_duration_since(Instant::now())));
    check()
}
