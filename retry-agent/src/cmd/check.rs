//! `check`: reads a configuration and says what it means.
use std::path::Path;
use std::process::ExitCode;

use super::BAD_CONFIG;
use crate::config::Settings;

pub(super) fn run(file: &Path) -> ExitCode {
    match Settings::read(file) {
        Ok(settings) => {
            let Settings { default, rules, .. } = &settings;
            println!(
                "{}: valid, {} rules; default {}, budget {}",
                file.display(),
                rules.len(),
                default.mode.label(),
                default.budget
            );
            for rule in rules {
                let treatment = &rule.treatment;
                println!("  {}: {}, budget {}", rule.name, treatment.mode.label(), treatment.budget);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(BAD_CONFIG)
        }
    }
}
