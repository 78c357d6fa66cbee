//! The demo's own control groups: one per service, all below one folder that disappears with the demo.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// How long a control group may take to become empty after its processes were killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// A control group that is removed, with what still runs in it, when it is dropped. Those below it go first:
/// declare them later.
pub struct Cgroup {
    path: PathBuf,
    name: String,
}

impl Cgroup {
    /// The top one of this demo, below the mount of cgroup2.
    ///
    /// # Errors
    /// When cgroup2 is not mounted, or we may not make a group there.
    pub fn top() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/mounts").context("cannot read /proc/mounts")?;
        let mount = mount_point(&mounts).context("no cgroup2 is mounted")?;
        Self::make(&mount, format!("retry-demo-{}", std::process::id()))
    }

    /// One below this one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn child(&self, name: &str) -> Result<Self> {
        let mount = self.path.ancestors().nth(Path::new(&self.name).components().count());
        Self::make(mount.context("a control group without a mount")?, format!("{}/{name}", self.name))
    }

    /// Path below the mount, without a leading slash: the name that the agent gives to a workload.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that takes the pid of a process to be moved here.
    pub fn processes(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    fn make(mount: &Path, name: String) -> Result<Self> {
        let path = mount.join(&name);
        fs::create_dir(&path).with_context(|| format!("cannot make control group {}", path.display()))?;
        Ok(Self { path, name })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Older kernels have no such file; then the guards of the processes have to do.
        if fs::read_to_string(self.processes()).is_ok_and(|pids| !pids.is_empty()) {
            fs::write(self.path.join("cgroup.kill"), "1").ok();
        }
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = fs::remove_dir(&self.path) {
            if Instant::now() > deadline {
                eprintln!("cannot remove control group {}: {error}", self.path.display());
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (point, kind) = (fields.nth(1)?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(point))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_by_its_type() {
        for (mounts, point) in [
            ("cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n", None),
            ("none /cgroup2 tmpfs rw 0 0\n", None),
            ("a /x tmpfs rw 0 0\nc /sys/fs/cgroup/unified cgroup2 rw 0 0\n", Some("/sys/fs/cgroup/unified")),
        ] {
            assert_eq!(mount_point(mounts), point.map(PathBuf::from), "{mounts}");
        }
    }
}
