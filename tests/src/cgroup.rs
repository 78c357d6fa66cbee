//! A cgroup of its own for a test, removed when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{unique, wait};

/// A fresh cgroup below the cgroup2 mount.
#[derive(Debug)]
pub struct Cgroup {
    name: String,
    path: PathBuf,
}

impl Cgroup {
    /// Makes one with a name of its own.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn new() -> Self {
        Self::named(&unique("retry-tests-"))
    }

    /// Makes one below this one.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn child(&self, name: &str) -> Self {
        Self::named(&format!("{}/{name}", self.name))
    }

    fn named(name: &str) -> Self {
        let path = mount().expect("a mounted cgroup2").join(name);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        Self { name: name.to_owned(), path }
    }

    /// Its path below the cgroup2 mount, without a leading slash: the workload's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `command`, to be run inside.
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("/bin/sh");
        inside.arg("-c").arg("echo $$ > \"$0\" && exec \"$@\"").arg(self.path.join("cgroup.procs"));
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }
}

impl Default for Cgroup {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The last process may still be on its way out.
        let gone = wait::within(Duration::from_secs(5), || fs::remove_dir(&self.path).ok());
        if gone.is_none() {
            eprintln!("cgroup {} could not be removed", self.path.display());
        }
    }
}

/// Where cgroup2 is mounted.
pub fn mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.into_iter().find(|fields| fields.get(2) == Some(&"cgroup2")).map(|fields| PathBuf::from(fields[1]))
}

/// The cgroups whose path begins with this, anywhere below the mount's root.
pub fn children_named(prefix: &str) -> Vec<PathBuf> {
    let root = mount().expect("a mounted cgroup2");
    let mut found = Vec::new();
    collect(&root, prefix, &mut found);
    found
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                found.push(path.clone());
            }
            collect(&path, prefix, found);
        }
    }
}
