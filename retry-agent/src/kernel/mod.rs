//! The only user of aya: loads, attaches and reads the kernel side.
//!
//! [`Kernel`] owns programs and maps; [`Devices`] keeps the reflector on every device that a workload can reach.

mod btf;
mod devices;
mod error;
mod load;
mod maps;
mod privileges;
mod system;

pub use devices::{Devices, remove_filters};
pub use error::{KernelError, chain};
pub use maps::{Events, Fill};
pub use privileges::check as check_privileges;
pub use system::send_signal;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aya::Ebpf;
use aya::programs::{CgroupAttachMode, CgroupSkb, CgroupSkbAttachType, CgroupSockAddr, SockOps};
use retry_common::abi::{Config, names};
use serde::Serialize;

use crate::config::Limits;
use maps::Maps;

/// The loaded kernel side. Dropping it detaches everything but what [`Devices`] holds.
pub struct Kernel {
    programs: Mutex<Ebpf>,
    maps: Maps,
}

/// One program as the verifier saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Its name.
    pub program: String,
    /// Instructions that the verifier walked through; 0 where the kernel does not say (before 5.16).
    pub verified_instructions: u32,
    /// Bytes of native code.
    pub jited_bytes: u32,
}

impl Kernel {
    /// Loads programs and maps; nothing is attached yet.
    ///
    /// # Errors
    /// When the kernel lacks type information, refuses a map or a program (with the verifier's last lines).
    pub fn load(limits: &Limits, config: Config) -> Result<Arc<Self>, KernelError> {
        let mut programs = load::object(limits)?;
        load::programs(&mut programs)?;
        let maps = Maps::take(&mut programs, limits, config)?;
        Ok(Arc::new(Self { programs: Mutex::new(programs), maps }))
    }

    /// Loads every program and reports what the verifier made of it.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn verify() -> Result<Vec<Verified>, KernelError> {
        let mut programs = load::object(&Limits::default())?;
        load::programs(&mut programs)?;
        load::report(&programs)
    }

    /// Attaches the cgroup programs to a cgroup; its processes and those below it are followed from their next
    /// connect on.
    ///
    /// # Errors
    /// When the folder is no cgroup or another owner forbids more programs on it.
    pub fn attach(&self, cgroup: &Path) -> Result<(), KernelError> {
        let folder = File::open(cgroup).map_err(|source| KernelError::cgroup(cgroup, source))?;
        let mut programs = self.programs();
        for name in [names::CONNECT4, names::CONNECT6] {
            let program: &mut CgroupSockAddr = load::program(&mut programs, name)?;
            program
                .attach(&folder, CgroupAttachMode::Single)
                .map_err(|e| KernelError::attach(name, cgroup, e))?;
        }
        let directions =
            [(names::EGRESS, CgroupSkbAttachType::Egress), (names::INGRESS, CgroupSkbAttachType::Ingress)];
        for (name, direction) in directions {
            let program: &mut CgroupSkb = load::program(&mut programs, name)?;
            let attached = program.attach(&folder, direction, CgroupAttachMode::Single);
            attached.map_err(|e| KernelError::attach(name, cgroup, e))?;
        }
        let program: &mut SockOps = load::program(&mut programs, names::SOCK_OPS)?;
        let attached = program.attach(&folder, CgroupAttachMode::Single);
        attached.map_err(|e| KernelError::attach(names::SOCK_OPS, cgroup, e))?;
        Ok(())
    }

    fn programs(&self) -> MutexGuard<'_, Ebpf> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// ms of the monotonic clock, as the kernel side counts them.
pub fn now_ms() -> u64 {
    system::monotonic_ms()
}
