//! Keeps the reflector on every device that a workload can reach.
//!
//! One thread goes from network namespace to network namespace (those of the processes below a cgroup, those that
//! have a name, and our own) and attaches to their Ethernet-like devices. New devices are told by netlink, new
//! namespaces are found when a process with a new edge shows up and by a scan of processes and names.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use aya::programs::tc::{SchedClassifierLink, qdisc_add_clsact, qdisc_detach_program};
use aya::programs::{SchedClassifier, TcAttachType};
use aya::util::KernelVersion;
use retry_common::abi::names;

use super::{Kernel, KernelError, load, system};

/// Time between two scans for new namespaces, ms.
const SCAN_MS: i32 = 500;
/// Where `ip netns`, CNI plugins and Docker name network namespaces, which they do before the first process
/// joins: a connection is covered only if its device was followed before it began.
const NAMED: [&str; 2] = ["/run/netns", "/run/docker/netns"];
/// Scans between two that look at every process again, which may have changed its namespace.
const FULL_SCAN: u32 = 20;
/// Most namespaces; a process that makes them in a loop must not take all our descriptors.
const MOST_NAMESPACES: usize = 1024;

/// Devices that are followed. Dropping it detaches from all.
pub struct Devices {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    wake: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stop: bool,
    /// Processes whose namespace is to be looked at.
    processes: Vec<u32>,
    /// What could not be attached to, once each, for the log.
    problems: Vec<String>,
}

impl Shared {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kernel {
    /// Attaches the reflector to the devices of our own network namespace and of those of the processes below
    /// `cgroup`, and goes on doing so. All that are there now are covered when this returns.
    ///
    /// # Errors
    /// When namespaces cannot be entered or our own devices refuse the programs.
    pub fn follow_devices(self: &Arc<Self>, cgroup: &Path) -> Result<Devices, KernelError> {
        let wake = system::signal().map_err(KernelError::Network)?;
        let shared = Arc::new(Shared { wake, state: Mutex::default() });
        let (ready, started) = mpsc::channel();
        let follower = Follower {
            own: None,
            kernel: Arc::clone(self),
            cgroup: cgroup.to_path_buf(),
            shared: Arc::clone(&shared),
            namespaces: BTreeMap::new(),
            known: BTreeSet::new(),
            told: BTreeSet::new(),
        };
        let thread = thread::Builder::new().name("devices".to_owned()).spawn(move || follower.run(&ready));
        let devices = Devices { shared, thread: Some(thread.map_err(KernelError::Network)?) };
        wait_for(&started)?;
        Ok(devices)
    }
}

fn wait_for(started: &Receiver<Result<(), KernelError>>) -> Result<(), KernelError> {
    let gone = |_| KernelError::Network(io::Error::other("the thread that follows devices ended"));
    started.recv().map_err(gone)?
}

impl Devices {
    /// Looks at the network namespace of a process soon.
    pub fn look_at(&self, process: u32) {
        self.shared.with(|state| state.processes.push(process));
        system::raise(&self.shared.wake);
    }

    /// What could not be covered since the last call.
    pub fn problems(&self) -> Vec<String> {
        self.shared.with(|state| std::mem::take(&mut state.problems))
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        self.shared.with(|state| state.stop = true);
        system::raise(&self.shared.wake);
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there; links are closed with the process at the latest.
            let _ = thread.join();
        }
    }
}

/// A network namespace and what is attached in it.
struct Namespace {
    handle: File,
    changes: OwnedFd,
    devices: BTreeMap<u32, Vec<SchedClassifierLink>>,
}

struct Follower {
    /// Inode number of our own namespace.
    own: Option<u64>,
    kernel: Arc<Kernel>,
    cgroup: PathBuf,
    shared: Arc<Shared>,
    /// By inode number.
    namespaces: BTreeMap<u64, Namespace>,
    /// Processes that were looked at.
    known: BTreeSet<u32>,
    /// Problems that were told.
    told: BTreeSet<String>,
}

impl Follower {
    fn run(mut self, ready: &Sender<Result<(), KernelError>>) {
        let started = self.start();
        let failed = started.is_err();
        // The other end waits for exactly this message.
        let _ = ready.send(started);
        let mut scans = 0_u32;
        while !failed && !self.shared.with(|state| state.stop) {
            self.wait();
            scans = scans.wrapping_add(1);
            if scans.is_multiple_of(FULL_SCAN) {
                self.known.clear();
                let mut used = self.scan();
                used.extend(self.own);
                // A namespace that nobody else uses must not live on through us.
                for (_, namespace) in self.namespaces.extract_if(.., |inode, _| !used.contains(inode)) {
                    detach(namespace);
                }
            } else {
                self.scan();
            }
        }
        std::mem::take(&mut self.namespaces).into_values().for_each(detach);
    }

    fn start(&mut self) -> Result<(), KernelError> {
        let inode = self.enter(Path::new("/proc/thread-self/ns/net")).map_err(KernelError::Network)?;
        self.own = Some(inode);
        self.cover(inode)?;
        self.scan();
        Ok(())
    }

    /// Waits for a wake-up, a changed device or the next scan.
    fn wait(&mut self) {
        let mut sockets = vec![&self.shared.wake];
        sockets.extend(self.namespaces.values().map(|namespace| &namespace.changes));
        let readable = system::wait(&sockets, SCAN_MS);
        if readable.first() == Some(&true) {
            system::drain_signal(&self.shared.wake);
        }
        let inodes: Vec<u64> = self.namespaces.keys().copied().collect();
        for (inode, _) in inodes.into_iter().zip(&readable[1..]).filter(|(_, readable)| **readable) {
            let Some(namespace) = self.namespaces.get(&inode) else { continue };
            system::drain(&namespace.changes);
            if let Err(error) = system::enter(&namespace.handle) {
                self.tell(format!("cannot enter network namespace {inode}: {error}"));
                continue;
            }
            if let Err(error) = self.cover(inode) {
                self.tell(error.to_string());
            }
        }
    }

    /// Looks for network namespaces that are new; gives those of all processes and names that were looked at.
    fn scan(&mut self) -> BTreeSet<u64> {
        let mut processes = BTreeSet::new();
        list_processes(&self.cgroup, &mut processes);
        let asked = self.shared.with(|state| std::mem::take(&mut state.processes));
        let fresh: Vec<u32> = processes.difference(&self.known).copied().chain(asked).collect();
        self.known = processes;
        let of_processes = fresh.into_iter().map(|process| PathBuf::from(format!("/proc/{process}/ns/net")));
        of_processes.chain(named()).filter_map(|path| self.look_at(&path)).collect()
    }

    /// Follows the namespace of this file if it is a new one; gives its inode number.
    fn look_at(&mut self, path: &Path) -> Option<u64> {
        // A process that ended in between has no file there.
        let inode = fs::metadata(path).ok()?.ino();
        if self.namespaces.contains_key(&inode) {
            return Some(inode);
        }
        match self.enter(path) {
            Ok(inode) => {
                if let Err(error) = self.cover(inode) {
                    self.tell(error.to_string());
                }
                return Some(inode);
            }
            // It ended just now; a name without a namespace is a plain file.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH | libc::EINVAL)) => {
            }
            Err(error) => {
                self.tell(format!("cannot enter the network namespace {}: {error}", path.display()))
            }
        }
        None
    }

    /// Enters a namespace that is not followed yet; gives its inode number.
    fn enter(&mut self, path: &Path) -> io::Result<u64> {
        if self.namespaces.len() >= MOST_NAMESPACES {
            return Err(io::Error::other(format!("{MOST_NAMESPACES} others are followed already")));
        }
        let handle = File::open(path)?;
        let inode = handle.metadata()?.ino();
        system::enter(&handle)?;
        let changes = system::watch_devices()?;
        self.namespaces.insert(inode, Namespace { handle, changes, devices: BTreeMap::new() });
        Ok(inode)
    }

    /// Attaches to the devices of the namespace that this thread is in.
    fn cover(&mut self, inode: u64) -> Result<(), KernelError> {
        let devices = system::devices().map_err(KernelError::Network)?;
        let Some(namespace) = self.namespaces.get_mut(&inode) else { return Ok(()) };
        // Links of devices that are gone went with them.
        namespace.devices.retain(|index, _| devices.iter().any(|device| device.index == *index));
        for device in devices {
            if namespace.devices.contains_key(&device.index) {
                continue;
            }
            let links = attach(&self.kernel, &device.name)?;
            namespace.devices.insert(device.index, links);
        }
        Ok(())
    }

    fn tell(&mut self, problem: String) {
        if self.told.len() < 1000 && self.told.insert(problem.clone()) {
            self.shared.with(|state| state.problems.push(problem));
        }
    }
}

/// Detaches from all devices of a namespace. Before 6.6 that is a netlink request, which only works inside.
fn detach(namespace: Namespace) {
    match system::enter(&namespace.handle) {
        Ok(()) => drop(namespace.devices),
        // From another namespace the request would hit a device of the same number there.
        Err(_) => std::mem::forget(namespace.devices),
    }
}

fn attach(kernel: &Kernel, device: &str) -> Result<Vec<SchedClassifierLink>, KernelError> {
    if !attaches_by_link() {
        // It may be there already; if it cannot be made, attaching says why.
        let _ = qdisc_add_clsact(device);
    }
    let mut programs = kernel.programs();
    let mut links = Vec::new();
    for (name, direction) in [(names::REFLECT, TcAttachType::Egress), (names::SHIELD, TcAttachType::Ingress)]
    {
        let program: &mut SchedClassifier = load::program(&mut programs, name)?;
        let link = program.attach(device, direction).and_then(|id| program.take_link(id));
        links.push(link.map_err(|error| KernelError::attach(name, Path::new(device), error))?);
    }
    Ok(links)
}

/// Removes the filters of agents that were killed, from the devices of our own network namespace and of all that
/// have a name or a process. Gives the devices they were on.
///
/// From 6.6 on there are none: links go with their process.
///
/// # Errors
/// When our own devices cannot be listed.
pub fn remove_filters() -> Result<Vec<String>, KernelError> {
    if attaches_by_link() {
        return Ok(Vec::new());
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.map(|entry| entry.path().join("ns/net"));
    let (mut seen, mut cleaned) = (BTreeSet::new(), Vec::new());
    for path in named().chain(processes) {
        let Ok(namespace) = File::open(&path) else { continue };
        let inode = namespace.metadata().map_err(KernelError::Network)?.ino();
        if !seen.insert(inode) || system::enter(&namespace).is_err() {
            continue;
        }
        for device in system::devices().map_err(KernelError::Network)? {
            let rows = [(names::REFLECT, TcAttachType::Egress), (names::SHIELD, TcAttachType::Ingress)];
            let removed =
                rows.map(|(name, direction)| qdisc_detach_program(&device.name, direction, name).is_ok());
            if removed.contains(&true) {
                cleaned.push(format!("{} in network namespace {inode}", device.name));
            }
        }
    }
    Ok(cleaned)
}

/// Namespaces that have a name. A folder that is not there has none.
fn named() -> impl Iterator<Item = PathBuf> {
    let entries = NAMED.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Whether aya attaches by tcx (6.6), which needs no queueing discipline, or by netlink.
fn attaches_by_link() -> bool {
    KernelVersion::current().is_ok_and(|kernel| kernel >= KernelVersion::new(6, 6, 0))
}

/// All processes of a cgroup and those below it.
fn list_processes(cgroup: &Path, processes: &mut BTreeSet<u32>) {
    // A cgroup that was removed in between has none.
    if let Ok(text) = fs::read_to_string(cgroup.join("cgroup.procs")) {
        processes.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
    }
    let Ok(entries) = fs::read_dir(cgroup) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list_processes(&entry.path(), processes);
        }
    }
}
