//! The standard library's source for the nightly toolchain.
//!
//! Two ways, in this order:
//! 1. `rustup component add rust-src`, which works wherever rustup reaches its server;
//! 2. Debian's package `rust-src` of the same Rust release, which only the suites after Debian 12 have. It is
//!    downloaded and unpacked, never installed, so the machine's own packages stay as they are. `core` of
//!    release 1.97.1 compiles with the nightly of 1.97.0 without a change (measured).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::present;
use super::private_apt::{Archive, PrivateApt};
use crate::paths;
use crate::process;
use crate::progress::Step;

/// Debian suites that may hold the source, the more settled one first.
const SUITES: [&str; 2] = ["forky", "sid"];

/// A file that exists exactly when the source is there and complete enough for `core`.
const PROOF: &str = "library/core/src/lib.rs";

/// Installs the source below nightly's own folder when it is missing.
///
/// # Errors
/// When neither rustup nor Debian can provide it.
pub fn ensure() -> Result<()> {
    let sysroot = process::capture(process::command("rustc").args(["+nightly", "--print", "sysroot"]))?;
    let destination = PathBuf::from(sysroot.trim()).join("lib/rustlib/src/rust");
    if destination.join(PROOF).exists() {
        present("standard library's source");
        return Ok(());
    }
    let mut rustup = process::command("rustup");
    rustup.args(["component", "add", "rust-src", "--toolchain", "nightly"]);
    let from_rustup = process::run_in_step("adding rust-src through rustup", "rust-src", rustup);
    if from_rustup.is_ok() && destination.join(PROOF).exists() {
        println!("  standard library's source: from rustup");
        return Ok(());
    }
    println!("  rustup cannot provide rust-src here; trying Debian's package of the same release");
    let version = process::capture(process::command("rustc").args(["+nightly", "--version"]))?;
    let release = release(&version).with_context(|| format!("no release in `{}`", version.trim()))?;
    from_debian(&release, &destination).with_context(|| {
        format!("neither rustup nor Debian can provide the standard library's source of Rust {release}")
    })
}

/// `1.97` of `rustc 1.97.0-nightly (…)`: what source and compiler must share.
fn release(version: &str) -> Option<String> {
    let number = version.split_whitespace().nth(1)?;
    let mut parts = number.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    Some(format!("{major}.{minor}"))
}

/// Whether a Debian version such as `1.97.1+dfsg1-1` is of that release.
fn is_of_release(debian_version: &str, release: &str) -> bool {
    debian_version.strip_prefix(release).is_some_and(|rest| rest.starts_with('.'))
}

fn from_debian(release: &str, destination: &Path) -> Result<()> {
    let mut offered = Vec::new();
    for suite in SUITES {
        let step = Step::begin(format!("looking for rust-src {release} in Debian's suite {suite}"));
        let apt = PrivateApt::new(&paths::setup().join("apt-rust-src").join(suite), Archive::Main, suite);
        let found = apt.and_then(|apt| Ok((apt.version_of("rust-src")?, apt)));
        if found.is_ok() {
            step.end()
        } else {
            step.fail()
        }
        match found {
            Ok((Some(version), apt)) if is_of_release(&version, release) => {
                println!("  standard library's source: from Debian's rust-src {version} ({suite})");
                return unpack(&apt, destination);
            }
            Ok((Some(version), _)) => offered.push(format!("{suite} has {version}")),
            Ok((None, _)) => offered.push(format!("{suite} has none")),
            Err(error) => offered.push(format!("{suite}: {error:#}")),
        }
    }
    bail!("no Debian suite has it ({})", offered.join("; "))
}

fn unpack(apt: &PrivateApt, destination: &Path) -> Result<()> {
    let tree = apt.download_and_unpack("rust-src")?;
    let sources = tree.join("usr/src");
    let source = fs::read_dir(&sources)
        .with_context(|| format!("cannot read {}", sources.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.join(PROOF).exists())
        .context("Debian's rust-src holds no library/core")?;
    fs::create_dir_all(destination).with_context(|| format!("cannot make {}", destination.display()))?;
    // `library` appears under its name only when it is complete: an interrupted copy is no source.
    let partial = destination.join("library.partial");
    process::capture(process::command("rm").arg("-rf").arg(&partial))?;
    process::capture(process::command("cp").arg("-r").arg(source.join("library")).arg(&partial))?;
    for lock in ["Cargo.lock", "library/Cargo.lock"].map(|name| source.join(name)) {
        if lock.exists() {
            fs::copy(&lock, destination.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
            break;
        }
    }
    fs::rename(&partial, destination.join("library")).context("cannot put library in its place")?;
    apt.remove()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_first_two_numbers() {
        assert_eq!(release("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)\n").as_deref(), Some("1.97"));
        assert_eq!(release("rustc"), None);
    }

    #[test]
    fn a_debian_version_matches_by_whole_numbers() {
        for (version, same) in [("1.97.1+dfsg1-1", true), ("1.98.0+dfsg1-1", false), ("1.970.0-1", false)] {
            assert_eq!(is_of_release(version, "1.97"), same, "{version}");
        }
    }
}
