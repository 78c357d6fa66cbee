//! Which CPU runs what. Client and origin share one: whatever the kernel side adds to a request is then taken
//! from the same CPU second, and throughput and CPU time per request tell the same story.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

/// The two CPUs of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// For wrk and nginx.
    pub load: u32,
    /// For the agent in user space and for this program.
    pub rest: u32,
}

impl Cpus {
    /// The last and the first CPU that this process may use: interrupts of devices prefer the first.
    ///
    /// # Errors
    /// When the kernel's list cannot be read.
    pub fn allowed() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let list = list.context("/proc/self/status names no allowed CPUs")?.trim();
        let (first, last) = ends(list).with_context(|| format!("cannot read the list of CPUs `{list}`"))?;
        Ok(Self { load: last, rest: first })
    }

    /// Whether there was only one to choose from.
    pub fn shared(self) -> bool {
        self.load == self.rest
    }
}

/// The first and the last CPU of a list such as `0-3,8`.
fn ends(list: &str) -> Option<(u32, u32)> {
    let first = list.split([',', '-']).next()?.parse().ok()?;
    let last = list.rsplit([',', '-']).next()?.parse().ok()?;
    Some((first, last))
}

/// `program` on one CPU. It gets SIGTERM when this process dies, however it dies: nothing of a benchmark stays
/// behind.
pub fn pinned(cpu: u32, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "taskset", "--cpu-list", &cpu.to_string()]);
    command.arg(program).stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_list_are_read() {
        for (list, expected) in [("0", (0, 0)), ("0-1", (0, 1)), ("2,4-7", (2, 7)), ("0-3,8", (0, 8))] {
            assert_eq!(ends(list), Some(expected), "{list}");
        }
        assert_eq!(ends(""), None);
    }
}
