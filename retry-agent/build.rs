//! Builds the kernel object with nightly (`-Z build-std`) and hands its path to `include_bytes_aligned!`.
use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    aya_build::build_ebpf(
        [aya_build::Package { name: "retry-ebpf", root_dir: "../retry-ebpf", ..Default::default() }],
        aya_build::Toolchain::default(),
    )
    .context("the kernel object did not build; `cargo xtask setup` installs what it needs")
}
