//! Keeps the reflector on every device that a workload can reach.
//!
//! One thread goes from network namespace to network namespace (those of the processes below a cgroup, and our
//! own) and attaches to their Ethernet-like devices. New devices are told by netlink, new namespaces are found
//! when a process with a new edge shows up and by a scan of the cgroup's processes.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use aya::programs::tc::{SchedClassifierLink, qdisc_add_clsact};
use aya::programs::{SchedClassifier, TcAttachType};
use aya::util::KernelVersion;
use retry_common::abi::names;

use super::{Kernel, KernelError, load, system};

/// Time between two scans for new namespaces, ms.
const SCAN_MS: i32 = 500;
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
            }
            self.scan();
        }
        self.leave();
    }

    fn start(&mut self) -> Result<(), KernelError> {
        let own = PathBuf::from("/proc/thread-self/ns/net");
        let inode = self.enter(&own).map_err(KernelError::Network)?;
        if let Some(inode) = inode {
            self.cover(inode)?;
        }
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

    /// Looks for network namespaces that are new.
    fn scan(&mut self) {
        let mut processes = BTreeSet::new();
        list_processes(&self.cgroup, &mut processes);
        let asked = self.shared.with(|state| std::mem::take(&mut state.processes));
        let fresh: Vec<u32> = processes.difference(&self.known).copied().chain(asked).collect();
        self.known = processes;
        for process in fresh {
            self.look_at(process);
        }
    }

    fn look_at(&mut self, process: u32) {
        // A process that ended in between has no file there.
        match self.enter(&PathBuf::from(format!("/proc/{process}/ns/net"))) {
            Ok(Some(inode)) => {
                if let Err(error) = self.cover(inode) {
                    self.tell(error.to_string());
                }
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                self.tell(format!("cannot enter the network namespace of process {process}: {error}"))
            }
        }
    }

    /// Enters a namespace that is not followed yet; gives its inode number.
    fn enter(&mut self, path: &Path) -> io::Result<Option<u64>> {
        let inode = fs::metadata(path)?.ino();
        if self.namespaces.contains_key(&inode) {
            return Ok(None);
        }
        if self.namespaces.len() >= MOST_NAMESPACES {
            self.tell(format!("more than {MOST_NAMESPACES} network namespaces: the others are not covered"));
            return Ok(None);
        }
        let handle = File::open(path)?;
        let inode = handle.metadata()?.ino();
        system::enter(&handle)?;
        let changes = system::watch_devices()?;
        self.namespaces.insert(inode, Namespace { handle, changes, devices: BTreeMap::new() });
        Ok(Some(inode))
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

    /// Detaches. Before 6.6 a link is a netlink request, which only works inside its namespace.
    fn leave(&mut self) {
        for namespace in std::mem::take(&mut self.namespaces).into_values() {
            if system::enter(&namespace.handle).is_ok() {
                drop(namespace.devices);
            }
        }
    }
}

fn attach(kernel: &Kernel, device: &str) -> Result<Vec<SchedClassifierLink>, KernelError> {
    // From 6.6 on aya attaches by tcx, which needs no queueing discipline.
    if KernelVersion::current().is_ok_and(|kernel| kernel < KernelVersion::new(6, 6, 0)) {
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
