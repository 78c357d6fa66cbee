//! What must hold for the demo to have shown what it claims.

use serde::Serialize;

/// One promise and what was seen of it.
#[derive(Serialize)]
pub struct Check {
    /// The promise, in words.
    pub what: String,
    /// The figures.
    pub seen: String,
    /// Whether it was kept.
    pub held: bool,
}

impl Check {
    /// A promise that was kept if `held`.
    pub fn new(what: impl Into<String>, seen: impl Into<String>, held: bool) -> Self {
        Self { what: what.into(), seen: seen.into(), held }
    }
}
