//! Build: leaves the agent in `target/release/retry-agent` with the kernel object embedded.

use anyhow::{Context as _, Result};

use crate::{paths, process, setup};

/// Sets the toolchain up and builds the agent.
///
/// # Errors
/// When set-up or cargo fails.
pub fn run() -> Result<()> {
    setup::toolchain()?;
    agent()
}

/// Builds the agent with the toolchain as it is.
///
/// # Errors
/// When cargo fails.
pub fn agent() -> Result<()> {
    println!("building {}", paths::agent().display());
    process::run(
        process::cargo()
            .args(["build", "--release", "--package", "retry-agent"])
            .env_remove(SKIP_KERNEL_OBJECT),
    )
    .context("the agent does not build")
}

/// Set to anything, it makes the agent's build script leave the kernel object out: checks and user-space tests
/// then need neither nightly nor bpf-linker.
pub const SKIP_KERNEL_OBJECT: &str = "AYA_BUILD_SKIP";
