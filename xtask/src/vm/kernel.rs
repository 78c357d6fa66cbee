//! Kernels to boot: Debian's cloud kernels, fetched and verified by apt from the mirror that the machine already
//! uses, unpacked below `target/vm/kernels`. Nothing is installed.

use std::cmp::Ordering;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::progress::Step;
use crate::setup::private_apt::{Archive, PrivateApt};

/// Debian suites that hold kernels, those with short package lists first: each is asked until one has a match.
const SUITES: [&str; 7] = [
    "bookworm-security",
    "trixie-security",
    "bullseye-security",
    "bookworm-backports",
    "trixie-backports",
    "forky",
    "sid",
];

/// A kernel unpacked on disk.
pub struct Kernel {
    /// Such as `6.1.0-57-cloud-amd64`; also the name of its folder with modules.
    pub version: String,
    /// Holds `vmlinuz` and `lib/modules/<version>`.
    pub folder: PathBuf,
}

/// The newest kernel whose version begins with `wanted` (`6.1`, `6.12`), fetched unless an earlier run did.
///
/// # Errors
/// When no suite has one, or the download fails.
pub fn get(cache: &Path, wanted: &str) -> Result<Kernel> {
    let link = cache.join("wanted").join(wanted);
    if let Ok(folder) = fs::canonicalize(&link) {
        let version = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        return Ok(Kernel { version: version.context("a kernel's folder has no name")?, folder });
    }
    let (apt, package) = find(cache, wanted)?;
    let version = package.trim_start_matches("linux-image-").to_owned();
    let folder = cache.join("kernels").join(&version);
    unpack(&apt, &package, &version, &folder).with_context(|| format!("cannot fetch {package}"))?;
    fs::create_dir_all(cache.join("wanted")).context("cannot note the kernel")?;
    symlink(&folder, &link).with_context(|| format!("cannot make {}", link.display()))?;
    Ok(Kernel { version, folder })
}

fn find(cache: &Path, wanted: &str) -> Result<(PrivateApt, String)> {
    let architecture = process::capture(process::command("dpkg").arg("--print-architecture"))?;
    if architecture.trim() != "amd64" {
        bail!("kernels are only fetched for amd64, this machine is {}", architecture.trim());
    }
    for suite in SUITES {
        let step = Step::begin(format!("looking for kernel {wanted} in Debian's suite {suite}"));
        let found = search(cache, suite, wanted);
        if found.is_ok() {
            step.end()
        } else {
            step.fail()
        }
        match found {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            // A mirror need not carry every suite.
            Err(error) => println!("    {error:#}"),
        }
    }
    bail!("no kernel {wanted} in Debian's suites {}", SUITES.join(", "))
}

fn search(cache: &Path, suite: &str, wanted: &str) -> Result<Option<(PrivateApt, String)>> {
    let apt = PrivateApt::new(&cache.join("apt").join(suite), Archive::of_suite(suite), suite)?;
    let prefix = format!("linux-image-{wanted}");
    let names = process::capture(apt.command("apt-cache").args(["pkgnames", &prefix]))?;
    Ok(newest(&names, wanted).map(|package| (apt, package)))
}

/// The newest cloud kernel among package names whose version is `wanted` or goes on after it.
fn newest(names: &str, wanted: &str) -> Option<String> {
    let prefix = format!("linux-image-{wanted}");
    let fits = |name: &&str| {
        name.strip_prefix(&prefix)
            .and_then(|rest| rest.strip_suffix("-cloud-amd64"))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+', '-']))
    };
    names.lines().filter(fits).max_by(|a, b| by_version(a, b)).map(str::to_owned)
}

/// Compares digits as numbers, everything else as text.
fn by_version(a: &str, b: &str) -> Ordering {
    parts(a).cmp(&parts(b))
}

fn parts(version: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = version;
    while !rest.is_empty() {
        let text = rest.len() - rest.trim_start_matches(|c: char| !c.is_ascii_digit()).len();
        let (text, tail) = rest.split_at(text);
        let digits = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (digits, tail) = tail.split_at(digits);
        parts.push((text.to_owned(), digits.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}

fn unpack(apt: &PrivateApt, package: &str, version: &str, folder: &Path) -> Result<()> {
    let depends = process::capture(apt.command("apt-cache").args(["depends", package]))?;
    let mut tree = apt.download_and_unpack(package)?;
    // Since 7.x the image package is empty: kernel and modules are in packages it depends on.
    for part in parts_of_kernel(&depends, version) {
        tree = apt.download_and_unpack(&part)?;
    }
    let modules =
        first_existing(&tree, &[format!("usr/lib/modules/{version}"), format!("lib/modules/{version}")])?;
    let image = first_existing(
        &tree,
        &[format!("boot/vmlinuz-{version}"), format!("usr/lib/modules/{version}/vmlinuz")],
    )?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder.join("lib/modules"))
        .with_context(|| format!("cannot make {}", folder.display()))?;
    fs::copy(&image, folder.join("vmlinuz")).context("cannot copy the kernel")?;
    fs::rename(&modules, folder.join("lib/modules").join(version)).context("cannot move the modules")?;
    process::capture(process::system_command("depmod").arg("-b").arg(folder).arg(version))?;
    apt.remove()
}

/// `linux-binary-…` and `linux-modules-…` of the same version in the output of `apt-cache depends`.
fn parts_of_kernel(depends: &str, version: &str) -> Vec<String> {
    depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .filter(|name| name.starts_with("linux-") && name.ends_with(&format!("-{version}")))
        .map(str::to_owned)
        .collect()
}

fn first_existing(tree: &Path, names: &[String]) -> Result<PathBuf> {
    let found = names.iter().map(|name| tree.join(name)).find(|path| path.exists());
    found.with_context(|| format!("the package holds none of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_of_the_wanted_version_is_taken() {
        let names = "linux-image-6.1.0-9-cloud-amd64\nlinux-image-6.1.0-57-cloud-amd64\n\
            linux-image-6.1.0-57-cloud-amd64-dbg\nlinux-image-6.12.117+deb13-cloud-amd64\n\
            linux-image-6.1.0-60-amd64\nlinux-image-6.12.9+deb13-cloud-amd64\n";
        for (wanted, found) in [
            ("6.1", Some("linux-image-6.1.0-57-cloud-amd64")),
            ("6.12", Some("linux-image-6.12.117+deb13-cloud-amd64")),
            ("6.12.9", Some("linux-image-6.12.9+deb13-cloud-amd64")),
            ("6", Some("linux-image-6.12.117+deb13-cloud-amd64")),
            ("5.10", None),
        ] {
            assert_eq!(newest(names, wanted).as_deref(), found, "{wanted}");
        }
    }

    #[test]
    fn the_parts_of_a_split_kernel_are_named_by_its_version() {
        let depends = "linux-image-7.2-cloud-amd64\n  Depends: linux-binary-7.2-cloud-amd64\n\
            |Depends: x\n  Depends: linux-modules-7.2-cloud-amd64\n  Depends: kmod\n  Recommends: linux-a-7.2-cloud-amd64\n";
        assert_eq!(
            parts_of_kernel(depends, "7.2-cloud-amd64"),
            ["linux-binary-7.2-cloud-amd64", "linux-modules-7.2-cloud-amd64"]
        );
    }
}
