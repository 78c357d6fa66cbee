//! The summary at the end of `cargo xtask test`: each stage with its time, each runner's closing line.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::runners::TestOutput;
use crate::progress::seconds;

/// What ran so far.
#[derive(Default)]
pub struct Report {
    stages: Vec<(&'static str, Duration, bool)>,
    results: Vec<TestOutput>,
}

impl Report {
    /// Runs one stage, which adds the output of its runners.
    ///
    /// # Errors
    /// The stage's own.
    pub fn stage(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Vec<TestOutput>) -> Result<()>,
    ) -> Result<()> {
        println!("== {name}");
        let started = Instant::now();
        let result = work(&mut self.results);
        let took = started.elapsed();
        println!("== {name}: {} in {}", if result.is_ok() { "passed" } else { "FAILED" }, seconds(took));
        self.stages.push((name, took, result.is_ok()));
        result
    }

    /// Prints the summary.
    pub fn print(&self) {
        println!("== summary");
        for (name, took, passed) in &self.stages {
            println!("{name:<32} {:>12}  {}", seconds(*took), if *passed { "passed" } else { "FAILED" });
        }
        for output in &self.results {
            if output.closing_lines.is_empty() {
                println!("{:<40} no closing line", output.runner);
            }
            for line in &output.closing_lines {
                println!("{:<40} {line}", output.runner);
            }
        }
        let passed: u64 = self.results.iter().map(TestOutput::passed).sum();
        let failed: u64 = self.results.iter().map(TestOutput::failed).sum();
        println!("{passed} passed, {failed} failed");
    }
}
