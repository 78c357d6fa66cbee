//! What this machine allows: root and its capabilities, cgroup2, commands on the search path. Kernel tests and
//! the demo need the first two; where they are missing we say so and end with a status of its own.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Exit status of a command whose kernel part cannot run on this machine.
pub const NOT_POSSIBLE_STATUS: u8 = 2;

/// Capability numbers of linux/capability.h: without them no program of ours loads or attaches.
const NEEDED_CAPABILITIES: [(u32, &str); 3] = [(12, "NET_ADMIN"), (21, "SYS_ADMIN"), (39, "BPF")];

/// Folders with administrators' programs, which an ordinary search path leaves out.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Why the kernel part cannot run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPossible(pub String);

impl fmt::Display for NotPossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this machine cannot run the kernel part: {}", self.0)
    }
}

impl std::error::Error for NotPossible {}

/// Whether programs can be loaded and attached here: root with its capabilities, and cgroup2 mounted.
///
/// # Errors
/// [`NotPossible`] with everything that is missing.
pub fn allows_kernel_programs() -> Result<(), NotPossible> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let missing = missing(&status, &mounts);
    if missing.is_empty() { Ok(()) } else { Err(NotPossible(missing.join("; "))) }
}

/// Whether this process is root.
pub fn is_root() -> bool {
    effective_uid(&fs::read_to_string("/proc/self/status").unwrap_or_default()) == Some(0)
}

/// Where a command is found on the search path or in the system folders.
pub fn find_command(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| Path::new(file).is_file())
}

/// Whether a command is found at all.
pub fn has_command(name: &str) -> bool {
    find_command(name).is_some()
}

fn missing(status: &str, mounts: &str) -> Vec<String> {
    let mut missing = Vec::new();
    if effective_uid(status) != Some(0) {
        missing.push("this is not root".to_owned());
    } else {
        let held = effective_capabilities(status);
        for (bit, name) in NEEDED_CAPABILITIES {
            if held & (1 << bit) == 0 {
                missing.push(format!("root has no capability {name} here (a container without it?)"));
            }
        }
    }
    if !has_cgroup2(mounts) {
        missing.push("no cgroup2 is mounted (mount -t cgroup2 none /sys/fs/cgroup/unified)".to_owned());
    }
    missing
}

fn effective_uid(status: &str) -> Option<u32> {
    field(status, "Uid:")?.split_whitespace().nth(1)?.parse().ok()
}

fn effective_capabilities(status: &str) -> u64 {
    field(status, "CapEff:").and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

fn has_cgroup2(mounts: &str) -> bool {
    mounts.lines().any(|line| line.split(' ').nth(2) == Some("cgroup2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n";
    const CGROUP2: &str = "none /proc proc rw 0 0\nnone /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn each_missing_part_is_named() {
        let user = ROOT.replace("\t0\t0", "\t1000\t1000");
        let container = ROOT.replace("1ff", "17f");
        let cases = [
            ("all there", ROOT, CGROUP2, vec![]),
            ("a plain user", &user, CGROUP2, vec!["not root"]),
            ("root without capabilities", &container, CGROUP2, vec!["capability BPF"]),
            ("only cgroup v1", ROOT, "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n", vec!["no cgroup2"]),
            ("nothing readable", "", "", vec!["not root", "no cgroup2"]),
        ];
        for (case, status, mounts, words) in cases {
            let missing = missing(status, mounts);
            assert_eq!(missing.len(), words.len(), "{case}: {missing:?}");
            for (text, word) in missing.iter().zip(words) {
                assert!(text.contains(word), "{case}: {text}");
            }
        }
    }

    #[test]
    fn a_mount_point_called_cgroup2_is_not_enough() {
        assert!(!has_cgroup2("none /cgroup2 tmpfs rw 0 0\n"));
    }

    #[test]
    fn commands_are_found_by_name() {
        assert!(has_command("sh"));
        assert!(!has_command("no-such-command-anywhere"));
    }
}
