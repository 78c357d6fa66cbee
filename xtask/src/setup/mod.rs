//! Set-up: makes a bare Debian 12 with rustup able to build, test and show the project.
//!
//! Each step looks first and acts only on what is missing, so a second run takes about a second. Each says what
//! it does, and fails with one sentence that names what it could not do.
//!
//! | step | what it provides | for |
//! |---|---|---|
//! | `debian` | programs from Debian's packages | tests, demo, benchmark |
//! | `nightly` | the nightly toolchain with clippy | the kernel side |
//! | `rust_src` | the standard library's source for nightly | the kernel side (`-Z build-std=core`) |
//! | `bpf_linker` | bpf-linker in the version that matches | the kernel side |
//! | `clients` | HTTP clients with pinned versions | tests, demo |

mod bpf_linker;
mod clients;
pub mod debian;
mod nightly;
pub mod private_apt;
mod rust_src;
mod stamp;

use anyhow::Result;

/// Provides what building the kernel side needs: no root, no Debian package beyond a C linker.
///
/// # Errors
/// When a step cannot provide its part; the message says which and why.
pub fn toolchain() -> Result<()> {
    println!("set-up: toolchain for the kernel side");
    nightly::ensure()?;
    rust_src::ensure()?;
    bpf_linker::ensure()
}

/// Provides everything that build, tests, demo and benchmark need.
///
/// # Errors
/// As [`toolchain`].
pub fn everything() -> Result<()> {
    println!("set-up: Debian packages");
    debian::ensure(debian::FOR_TESTS)?;
    toolchain()?;
    println!("set-up: test clients");
    clients::ensure()
}

/// Tells the reader that a part was found as needed.
fn present(what: &str) {
    println!("  {what}: present");
}
