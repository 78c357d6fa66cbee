//! Waiting for a condition, with a deadline: the only place of the tests that lets time pass.

use std::thread;
use std::time::{Duration, Instant};

/// Long enough for anything on a loaded machine; a test that reaches it has failed.
pub const PATIENCE: Duration = Duration::from_secs(10);

const STEP: Duration = Duration::from_millis(2);

/// Asks until the answer is `Some`, for at most [`PATIENCE`].
///
/// # Panics
/// When the time is up; the message names `what`.
pub fn until_some<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    match within(PATIENCE, &mut ask) {
        Some(answer) => answer,
        None => panic!("waited {} s in vain for: {what}", PATIENCE.as_secs()),
    }
}

/// Asks until the answer is yes, for at most [`PATIENCE`].
///
/// # Panics
/// When the time is up; the message names `what`.
pub fn until(what: &str, mut ask: impl FnMut() -> bool) {
    until_some(what, || ask().then_some(()));
}

/// Asks until the answer is `Some` or `limit` has passed.
pub fn within<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(STEP);
    }
}
