//! Cgroups (v2): where they are mounted, a fresh one, and its removal.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How the cgroups of `exec` are called, before the agent's process id.
const PREFIX: &str = "retry-agent-exec-";
/// How long a cgroup may take to become empty after its last process is gone.
const EMPTY_WITHIN: Duration = Duration::from_secs(2);

/// What went wrong with a cgroup.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// None is mounted.
    #[error("there is no cgroup2 file system; mount one with `mount -t cgroup2 none /sys/fs/cgroup`")]
    NotMounted,
    /// A file or folder refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_path_buf();
    move |source| CgroupError::Io { what, path, source }
}

/// Where cgroup2 is mounted; the first place if there are several.
///
/// # Errors
/// When it is mounted nowhere.
pub fn mount() -> Result<PathBuf, CgroupError> {
    let path = Path::new("/proc/mounts");
    let mounts = fs::read_to_string(path).map_err(failed("read", path))?;
    mount_in(&mounts).ok_or(CgroupError::NotMounted)
}

fn mount_in(mounts: &str) -> Option<PathBuf> {
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    // Blanks in paths are written as octal numbers.
    let line = lines.find(|fields| fields.get(2) == Some(&"cgroup2"))?;
    Some(PathBuf::from(line.get(1)?.replace("\\040", " ")))
}

/// The cgroup of this process below the mount.
///
/// # Errors
/// When the kernel does not say.
pub fn own(mount: &Path) -> Result<PathBuf, CgroupError> {
    let path = Path::new("/proc/self/cgroup");
    let text = fs::read_to_string(path).map_err(failed("read", path))?;
    let below = text.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(CgroupError::NotMounted)?;
    Ok(mount.join(below))
}

/// Moves this process into a cgroup.
///
/// # Errors
/// When the kernel refuses.
pub fn join(cgroup: &Path) -> Result<(), CgroupError> {
    fs::write(cgroup.join("cgroup.procs"), "0").map_err(failed("join the cgroup", cgroup))
}

/// Cgroups of agents that are gone, anywhere below the mount.
pub fn left_behind(mount: &Path) -> Vec<Fresh> {
    let mut found = Vec::new();
    for path in subfolders(mount) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name.strip_prefix(PREFIX).and_then(|process| process.parse::<u32>().ok()) {
            Some(process) if !Path::new("/proc").join(process.to_string()).exists() => {
                found.push(Fresh { parent: mount.to_path_buf(), path });
            }
            _ => found.extend(left_behind(&path)),
        }
    }
    found
}

/// A cgroup that was made for one command.
#[derive(Debug)]
pub struct Fresh {
    path: PathBuf,
    parent: PathBuf,
}

impl Fresh {
    /// Makes one below `parent` for the agent with this process id.
    ///
    /// # Errors
    /// When it exists or may not be made.
    pub fn make(parent: &Path, process: u32) -> Result<Self, CgroupError> {
        let path = parent.join(format!("{PREFIX}{process}"));
        fs::create_dir(&path).map_err(failed("make the cgroup", &path))?;
        Ok(Self { path, parent: parent.to_path_buf() })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all below it. Processes that the command left behind go on in the parent.
    ///
    /// Gives their number.
    ///
    /// # Errors
    /// When it does not become empty.
    pub fn remove(self) -> Result<usize, CgroupError> {
        let deadline = Instant::now() + EMPTY_WITHIN;
        let mut left = 0;
        loop {
            left += move_out(&self.path, &self.parent);
            match remove_tree(&self.path) {
                Ok(()) => return Ok(left),
                // A process that is ending still counts for a moment.
                Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(failed("remove the cgroup", &self.path)(error)),
            }
        }
    }
}

fn move_out(cgroup: &Path, parent: &Path) -> usize {
    let mut moved = 0;
    for folder in subfolders(cgroup) {
        moved += move_out(&folder, parent);
    }
    let processes = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    for process in processes.lines() {
        // One that ended in between needs no move.
        moved += usize::from(fs::write(parent.join("cgroup.procs"), process).is_ok());
    }
    moved
}

fn remove_tree(cgroup: &Path) -> io::Result<()> {
    for folder in subfolders(cgroup) {
        remove_tree(&folder)?;
    }
    fs::remove_dir(cgroup)
}

fn subfolders(cgroup: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(cgroup) else { return Vec::new() };
    let folder =
        |entry: fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| entry.path());
    entries.flatten().filter_map(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_on_unified_and_hybrid_machines() {
        let hybrid = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount_in(hybrid), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        let odd = "none /mnt/with\\040blank cgroup2 rw 0 0\n";
        assert_eq!(mount_in(odd), Some(PathBuf::from("/mnt/with blank")));
        assert_eq!(mount_in("proc /proc proc rw 0 0\n"), None);
    }
}
