//! Check: everything that can be said about the code without running it. Every step runs, also after one that
//! failed, so that one run shows all there is to mend.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::build::SKIP_KERNEL_OBJECT;
use crate::progress::seconds;
use crate::{docs, process, setup, tidy};

/// One step: its name and what it does.
type Step = (&'static str, fn() -> Result<()>);

const STEPS: [Step; 6] = [
    ("format", format),
    ("tidy", tidy::run),
    ("clippy", clippy),
    ("clippy of the kernel side", clippy_kernel),
    ("documentation builds", documentation),
    ("generated pages are fresh", generated_pages),
];

/// Runs every step.
///
/// # Errors
/// When at least one step failed; the message names all that did.
pub fn run() -> Result<()> {
    setup::toolchain()?;
    let mut failed = Vec::new();
    for (name, step) in STEPS {
        println!("check: {name}");
        let started = Instant::now();
        match step() {
            Ok(()) => println!("check: {name}: passed in {}", seconds(started.elapsed())),
            Err(error) => {
                println!("check: {name}: FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("check failed: {}", failed.join(", "));
    }
    println!("check: all {} steps passed", STEPS.len());
    Ok(())
}

fn format() -> Result<()> {
    process::run(process::cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    process::run(
        process::cargo()
            .args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
            .env(SKIP_KERNEL_OBJECT, "1"),
    )
}

/// The kernel side under its own target, with the flags that aya-build gives it.
fn clippy_kernel() -> Result<()> {
    let architecture = format!("--cfg=bpf_target_arch=\"{}\"", std::env::consts::ARCH);
    process::run(
        process::cargo_nightly()
            .args(["clippy", "--package", "retry-ebpf", "--target", "bpfel-unknown-none"])
            .args(["-Z", "build-std=core", "--", "-D", "warnings"])
            .env("RUSTFLAGS", architecture),
    )
}

fn documentation() -> Result<()> {
    process::run(
        process::cargo()
            .args(["doc", "--workspace", "--no-deps", "--document-private-items"])
            // Private items are documented here, so links to them lead somewhere.
            .env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links")
            .env(SKIP_KERNEL_OBJECT, "1"),
    )
}

fn generated_pages() -> Result<()> {
    docs::run(true)
}
