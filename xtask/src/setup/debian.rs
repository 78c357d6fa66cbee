//! Programs that come from Debian's packages: finds what is missing, installs it without starting any service.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::present;
use crate::{host, process};

/// One Debian package and the reason to want it.
#[derive(Clone, Copy)]
pub struct Need {
    pub package: &'static str,
    /// A command that makes the package unnecessary when it is there from elsewhere.
    pub or_command: Option<&'static str>,
    /// A service that the package would start, now and at every boot.
    pub service: Option<&'static str>,
}

const fn package(package: &'static str) -> Need {
    Need { package, or_command: None, service: None }
}

/// What the tests, the demo and the benchmark run.
pub const FOR_TESTS: &[Need] = &[
    package("curl"),
    package("python3-venv"),
    Need { package: "nodejs", or_command: Some("node"), service: None },
    Need { package: "npm", or_command: Some("npm"), service: None },
    package("golang-go"),
    package("golang-github-hashicorp-go-retryablehttp-dev"),
    Need { package: "nginx", or_command: None, service: Some("nginx") },
    package("wrk"),
    package("iproute2"),
    package("nftables"),
    package("conntrack"),
    package("tmux"),
];

/// What `cargo xtask vm` runs on top: the virtual machine, and the tools that unpack kernels.
pub const FOR_VM: &[Need] = &[
    package("qemu-system-x86"),
    package("busybox-static"),
    package("kmod"),
    package("cpio"),
    package("xz-utils"),
    package("zstd"),
    package("lz4"),
];

/// Asked by Debian's package scripts before they start a service; status 101 forbids it.
const POLICY_SCRIPT: &str = "/usr/sbin/policy-rc.d";

/// Installs those of `needs` that are missing.
///
/// # Errors
/// When something is missing and this is no Debian, not root, or apt-get fails.
pub fn ensure(needs: &[Need]) -> Result<()> {
    let listing = installed(needs)?;
    let missing: Vec<Need> = needs.iter().copied().filter(|need| is_missing(*need, &listing)).collect();
    if missing.is_empty() {
        present("Debian packages");
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|need| need.package).collect();
    if !host::is_root() {
        bail!(
            "Debian packages are missing and only root can install them: apt-get install {}",
            names.join(" ")
        );
    }
    println!("  missing: {}", names.join(" "));
    process::run_in_step("updating apt's package lists", "apt-update", apt_get(&["update"]))?;
    let _quiet = NoServices::begin()?;
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    install.args(&names);
    process::run_in_step("installing Debian packages", "apt-install", install)?;
    missing.iter().filter_map(|need| need.service).try_for_each(keep_off)
}

fn apt_get(args: &[&str]) -> Command {
    let mut command = process::command("apt-get");
    command.arg("-q").args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// dpkg's word on the packages, one `package status` a line; packages it never heard of are left out.
fn installed(needs: &[Need]) -> Result<String> {
    let output = process::command("dpkg-query")
        .args(["--show", "--showformat=${Package} ${db:Status-Status}\n"])
        .args(needs.iter().map(|need| need.package))
        .output()
        .context("cannot ask dpkg-query for the installed packages; set-up knows Debian only")?;
    // dpkg-query ends with status 1 as soon as one package is unknown, which is an answer here.
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_missing(need: Need, listing: &str) -> bool {
    let installed = listing.lines().any(|line| {
        line.split_once(' ').is_some_and(|(name, status)| name == need.package && status == "installed")
    });
    !installed && !need.or_command.is_some_and(host::has_command)
}

/// Takes a service we brought out of the boot sequence: the tests start their own instances.
fn keep_off(service: &str) -> Result<()> {
    if !host::has_command("systemctl") {
        return Ok(());
    }
    process::capture(process::command("systemctl").args(["--quiet", "disable", service]))
        .with_context(|| format!("cannot keep the service {service} from starting at boot"))?;
    println!("  {service}: installed as a program, its service stays off");
    Ok(())
}

/// While this lives, installing a package starts no service.
struct NoServices {
    ours: bool,
}

impl NoServices {
    fn begin() -> Result<Self> {
        if Path::new(POLICY_SCRIPT).exists() {
            // The machine's owner has a policy already; it stays in force.
            return Ok(Self { ours: false });
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(POLICY_SCRIPT)
            .with_context(|| format!("cannot write {POLICY_SCRIPT}"))?;
        let guard = Self { ours: true };
        file.write_all(b"#!/bin/sh\nexit 101\n").with_context(|| format!("cannot write {POLICY_SCRIPT}"))?;
        Ok(guard)
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours && fs::remove_file(POLICY_SCRIPT).is_err() {
            eprintln!(
                "  cannot remove {POLICY_SCRIPT}, which keeps services from starting; remove it by hand"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_status_installed_counts() {
        let listing = "curl installed\nwrk config-files\nnginx half-installed\n";
        for (name, missing) in [("curl", false), ("wrk", true), ("nginx", true), ("tmux", true)] {
            assert_eq!(is_missing(package(name), listing), missing, "{name}");
        }
    }

    #[test]
    fn a_command_from_elsewhere_replaces_its_package() {
        let need = |command| Need { package: "nodejs", or_command: Some(command), service: None };
        assert!(!is_missing(need("sh"), ""));
        assert!(is_missing(need("no-such-command-anywhere"), ""));
    }

    #[test]
    fn a_package_whose_name_begins_alike_is_another_one() {
        assert!(is_missing(package("golang-go"), "golang-go-dbus installed\n"));
    }
}
