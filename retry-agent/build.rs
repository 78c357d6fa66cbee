//! Builds the kernel object with nightly (`-Z build-std`) and hands its path to `include_bytes_aligned!`.
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let missing = missing_tool();
    match missing {
        None => aya_build::build_ebpf(
            [aya_build::Package { name: "retry-ebpf", root_dir: "../retry-ebpf", ..Default::default() }],
            aya_build::Toolchain::default(),
        )
        .context("the kernel object did not build")?,
        Some(tool) => {
            println!(
                "cargo::warning=no {tool}: built without the kernel side, enough for checks and user-space \
                 tests; `cargo xtask setup` installs what is missing"
            );
            // A file that never exists: look again at every build, until the tools are there.
            println!("cargo::rerun-if-changed=until-the-tools-are-there");
        }
    }
    // With AYA_BUILD_SKIP, or without the tools, there is none: an empty one, which the agent refuses to load.
    let folder = env::var_os("OUT_DIR").context("cargo names no OUT_DIR")?;
    let object = PathBuf::from(folder).join("retry-ebpf");
    if missing.is_some() || !object.exists() {
        fs::write(&object, b"").with_context(|| format!("cannot write {}", object.display()))?;
    }
    Ok(())
}

/// What the kernel side is built with beyond stable Rust, if it is not installed.
fn missing_tool() -> Option<&'static str> {
    let works = |program: &str, args: &[&str]| {
        Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
    };
    if !works("bpf-linker", &["--version"]) {
        return Some("bpf-linker");
    }
    if !works("rustup", &["run", "nightly", "rustc", "--version"]) {
        return Some("nightly toolchain");
    }
    None
}
