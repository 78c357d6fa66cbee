//! Network namespaces of a test's own, joined by veth pairs, removed when dropped.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;

use crate::{process, unique, wait};

/// A fresh network namespace with its loopback up.
#[derive(Debug)]
pub struct Netns {
    /// For `ip`: a name below `/run/netns`, or the id of a process.
    name: String,
    /// The process that keeps an unnamed one alive.
    holder: Option<Child>,
}

impl Netns {
    /// Makes one.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn new() -> Self {
        let name = unique("rt-");
        system(&format!("ip netns add {name}"));
        let made = Self { name, holder: None };
        made.ip("link set lo up");
        made
    }

    /// Makes one that only a process outside every test's cgroup leads to.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn unnamed() -> Self {
        let holder = words("unshare --net sleep 600").spawn().expect("unshare can be started");
        let made = Self { name: holder.id().to_string(), holder: Some(holder) };
        let inode = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        wait::until("the process has left our namespace", || {
            inode(&made.name).is_some_and(|own| Some(own) != inode("self"))
        });
        made.ip("link set lo up");
        made
    }

    /// The file that stands for it.
    pub fn path(&self) -> PathBuf {
        match self.holder {
            Some(_) => PathBuf::from(format!("/proc/{}/ns/net", self.name)),
            None => PathBuf::from("/run/netns").join(&self.name),
        }
    }

    /// `command`, to be run inside. Not by `ip netns exec`: that hides the cgroup mounts.
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net={}", self.path().display()));
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }

    /// Runs `ip` with these words inside.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn ip(&self, words: &str) {
        self.run(&format!("ip {words}"));
    }

    /// Runs a command line inside, its words divided by blanks.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        let ended = process::run(&mut self.command(&words(line)));
        assert!(ended.status.success(), "{line} in {}: {}", self.name, ended.stderr);
        ended.stdout
    }

    /// Calls `act` on a thread that is inside; sockets made there stay there.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        inside(&self.path(), act)
    }
}

/// Calls `act` on a thread that is inside the namespace of this file; sockets made there stay there.
///
/// # Panics
/// When it cannot be entered.
pub fn inside<T: Send>(path: &Path, act: impl FnOnce() -> T + Send) -> T {
    let file = File::open(path).unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            // SAFETY: the descriptor is open and setns changes only the calling thread.
            let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "cannot enter {}", path.display());
            act()
        });
        inside.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}

impl Default for Netns {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if let Some(holder) = &mut self.holder {
            // It may have ended by itself; the namespace goes with it.
            let _ = holder.kill().and_then(|()| holder.wait());
            return;
        }
        let ended = process::run(&mut words(&format!("ip netns del {}", self.name)));
        if !ended.status.success() {
            eprintln!("network namespace {} could not be removed: {}", self.name, ended.stderr);
        }
    }
}

/// One end of a veth pair: where it is and what its address is, with the length of its prefix.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    pub netns: &'a Netns,
    pub device: &'a str,
    pub address: IpAddr,
    pub prefix: u8,
}

/// Joins two namespaces and waits until IPv6 addresses may be used.
///
/// # Panics
/// When the kernel refuses.
pub fn join(left: End<'_>, right: End<'_>) {
    let (ours, theirs) = (left.netns, right.netns);
    ours.ip(&format!("link add {} type veth peer name {} netns {}", left.device, right.device, theirs.name));
    for end in [left, right] {
        // Duplicate address detection would keep an IPv6 address unusable for a second.
        let nodad = if end.address.is_ipv6() { " nodad" } else { "" };
        end.netns.ip(&format!("addr add {}/{} dev {}{nodad}", end.address, end.prefix, end.device));
        end.netns.ip(&format!("link set {} up", end.device));
    }
}

/// The end of a pair with an address.
///
/// # Panics
/// When the address is none.
pub fn end<'a>(netns: &'a Netns, device: &'a str, address: &str) -> End<'a> {
    let (address, prefix) = address.split_once('/').expect("address/prefix");
    End {
        netns,
        device,
        address: address.parse().expect("an address"),
        prefix: prefix.parse().expect("a length"),
    }
}

#[track_caller]
fn system(line: &str) {
    process::run(&mut words(line)).assert_success();
}

fn words(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words);
    command
}
