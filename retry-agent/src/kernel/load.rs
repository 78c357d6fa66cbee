//! From the embedded object to loaded programs.
use aya::programs::{Program, ProgramError};
use aya::{Ebpf, EbpfLoader};
use aya_log::Level;
use retry_common::abi::names;

use super::{KernelError, Verified, btf};
use crate::config::Limits;

/// The kernel side, built by `build.rs`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/retry-ebpf"));

/// Makes the maps and reads the programs.
pub(super) fn object(limits: &Limits) -> Result<Ebpf, KernelError> {
    if OBJECT.is_empty() {
        return Err(KernelError::NotBuilt);
    }
    let shutdown_offset = btf::offset("sock", "sk_shutdown")?;
    let seed = super::system::random();
    let log_level = if tracing::enabled!(tracing::Level::DEBUG) { Level::Debug as u8 } else { 0 };
    let mut loader = EbpfLoader::new();
    loader
        .override_global(aya_log::LEVEL, &log_level, true)
        .override_global(names::SHUTDOWN_OFFSET, &shutdown_offset, true)
        .override_global(names::SEED, &seed, true)
        // One more for the overflow edge.
        .map_max_entries(names::EDGES, limits.edges.saturating_add(1))
        .map_max_entries(names::ASSIGNMENTS, limits.edges.saturating_mul(2))
        .map_max_entries(names::FAILURES, limits.failures);
    Ok(loader.load(OBJECT)?)
}

/// Has the verifier check every program.
pub(super) fn programs(ebpf: &mut Ebpf) -> Result<(), KernelError> {
    for name in names::PROGRAMS {
        let program = ebpf.program_mut(name).ok_or(KernelError::Missing(name))?;
        let loaded = match program {
            Program::CgroupSockAddr(program) => program.load(),
            Program::CgroupSkb(program) => program.load(),
            Program::SockOps(program) => program.load(),
            Program::SchedClassifier(program) => program.load(),
            _ => return Err(KernelError::Missing(name)),
        };
        loaded.map_err(|error| KernelError::program(name, error))?;
    }
    Ok(())
}

/// What the verifier made of each program.
pub(super) fn report(ebpf: &Ebpf) -> Result<Vec<Verified>, KernelError> {
    let of = |name: &'static str| {
        let program = ebpf.program(name).ok_or(KernelError::Missing(name))?;
        let info = program.info().map_err(|error| KernelError::program(name, error))?;
        Ok(Verified {
            program: name.to_owned(),
            verified_instructions: info.verified_instruction_count().unwrap_or(0),
            jited_bytes: info.size_jitted(),
        })
    };
    names::PROGRAMS.into_iter().map(of).collect()
}

/// A program of a certain kind.
pub(super) fn program<'a, P>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, KernelError>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    let program = ebpf.program_mut(name).ok_or(KernelError::Missing(name))?;
    program.try_into().map_err(|error| KernelError::program(name, error))
}
