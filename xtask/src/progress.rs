//! What the reader sees while a step takes long: a spinner with the elapsed time and the newest line of output
//! on a terminal, one line at the start and one at the end elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// One step that is under way.
pub struct Step {
    what: String,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Step {
    /// Says that `what` begins.
    pub fn begin(what: impl Into<String>) -> Self {
        let what = what.into();
        let bar = std::io::stderr().is_terminal().then(|| spinner(&what));
        if bar.is_none() {
            println!("  {what} …");
        }
        Self { what, started: Instant::now(), bar }
    }

    /// Shows the newest line of the running tool; only a terminal has room for it.
    pub fn show(&self, line: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(line.chars().take(70).collect::<String>());
        }
    }

    /// Says that the step is over and how long it took.
    pub fn end(self) {
        self.clear();
        println!("  {}: done in {}", self.what, seconds(self.started.elapsed()));
    }

    /// Says that the step did not succeed; what happens then is the caller's business.
    pub fn fail(self) {
        self.clear();
        println!("  {}: failed after {}", self.what, seconds(self.started.elapsed()));
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A duration as people read it.
pub fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        0..=9 => format!("{:.1} s", duration.as_secs_f64()),
        whole @ 10..=119 => format!("{whole} s"),
        whole => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_prefix(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("  {spinner} {prefix} [{elapsed}] {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_for_people() {
        for (millis, text) in [(40, "0.0 s"), (1_250, "1.2 s"), (61_000, "61 s"), (125_000, "2 min 05 s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
    }
}
