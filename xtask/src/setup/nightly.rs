//! The nightly toolchain: the kernel side builds `core` itself (`-Z build-std`), which stable does not allow.

use anyhow::{Context as _, Result};

use super::present;
use crate::process::{self, succeeds};

/// Installs the nightly toolchain and its clippy when they are missing.
///
/// # Errors
/// When rustup is missing or cannot install them.
pub fn ensure() -> Result<()> {
    if !succeeds(process::command("rustc").args(["+nightly", "--version"])) {
        let mut rustup = process::command("rustup");
        rustup.args(["toolchain", "install", "nightly", "--profile", "minimal", "--component", "clippy"]);
        process::run_in_step("installing the nightly toolchain", "nightly", rustup)
            .context("the kernel side needs rustup with a nightly toolchain")?;
    } else if !succeeds(process::cargo_nightly().args(["clippy", "--version"])) {
        let mut rustup = process::command("rustup");
        rustup.args(["component", "add", "clippy", "--toolchain", "nightly"]);
        process::run_in_step("adding clippy to nightly", "nightly-clippy", rustup)?;
    } else {
        present("nightly toolchain");
    }
    Ok(())
}
