//! Builds the kernel object with nightly (`-Z build-std`) and hands its path to `include_bytes_aligned!`.
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    aya_build::build_ebpf(
        [aya_build::Package { name: "retry-ebpf", root_dir: "../retry-ebpf", ..Default::default() }],
        aya_build::Toolchain::default(),
    )
    .context("the kernel object did not build; `cargo xtask setup` installs what it needs")?;
    // With AYA_BUILD_SKIP (checks that run nothing) there may be no object: an empty one, which no kernel takes.
    let object =
        PathBuf::from(std::env::var_os("OUT_DIR").context("cargo names no OUT_DIR")?).join("retry-ebpf");
    if !object.exists() {
        fs::write(&object, b"").with_context(|| format!("cannot write {}", object.display()))?;
    }
    Ok(())
}
