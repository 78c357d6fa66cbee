//! `cleanup`: removes what agents left behind that were killed.
//!
//! Programs and maps go with their process. What stays is the cgroup of an `exec`, and before Linux 6.6, where
//! the reflector is attached by netlink, its filters.
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cgroup;
use crate::kernel;

pub(super) fn run() -> Result<ExitCode> {
    kernel::check_privileges()?;
    if let Some(process) = other_agents().first() {
        bail!("an agent is running (process {process}); stop it first");
    }
    let mut removed = 0;
    for fresh in cgroup::left_behind(&cgroup::mount()?) {
        let path = fresh.path().to_path_buf();
        let moved = fresh.remove()?;
        println!("removed the cgroup {} ({moved} processes moved out)", path.display());
        removed += 1;
    }
    for place in kernel::remove_filters()? {
        println!("removed the filters on {place}");
        removed += 1;
    }
    if removed == 0 {
        println!("nothing was left behind");
    }
    Ok(ExitCode::SUCCESS)
}

/// Processes other than this one that run the same program by name.
fn other_agents() -> Vec<u32> {
    let name = |process: &Path| fs::read_link(process.join("exe")).ok()?.file_name().map(ToOwned::to_owned);
    let own = name(Path::new("/proc/self"));
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes =
        entries.flatten().filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let others = processes.filter(|(process, _)| *process != std::process::id());
    others.filter(|(_, path)| own.is_some() && name(path) == own).map(|(process, _)| process).collect()
}
