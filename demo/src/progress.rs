//! What the reader sees while a part of a story takes its time: a bar on a terminal, a line elsewhere.

use std::io::IsTerminal as _;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// One part of a story that is under way; it disappears when it is dropped.
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
}

impl Progress {
    /// Says that `what` begins; it is over after `length` steps.
    pub fn begin(what: &str, length: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(what, length));
        if bar.is_none() {
            println!("  {what} …");
        }
        Self { bar, started: Instant::now() }
    }

    /// Says that something else begins; only without a bar, which says so itself.
    pub fn scene(&self, what: &str) {
        if self.bar.is_none() {
            println!("    after {:.0} s: {what}", self.seconds());
        }
    }

    /// How far it is, and what is to be seen just now.
    pub fn show(&self, position: u64, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(message.to_owned());
        }
    }

    /// Seconds since it began.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length).with_prefix(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("  {prefix} [{bar:24}] {elapsed} {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
