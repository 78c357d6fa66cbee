//! Offsets of kernel fields, from the kernel's own type information: aya has no relocations for Rust programs.
use btf_rs::{Btf, Type};

use super::KernelError;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Byte offset of a member of a kernel structure.
///
/// # Errors
/// When the kernel has no type information, or no such member.
pub fn offset(structure: &str, member: &str) -> Result<u32, KernelError> {
    let btf = Btf::from_file(VMLINUX).map_err(wrong)?;
    for found in btf.resolve_types_by_name(structure).map_err(wrong)? {
        let Type::Struct(found) = found else { continue };
        for field in &found.members {
            if btf.resolve_name(field).is_ok_and(|name| name == member) {
                return Ok(field.bit_offset() / 8);
            }
        }
    }
    Err(KernelError::Btf(format!("struct {structure} has no member {member}")))
}

fn wrong(error: impl std::fmt::Display) -> KernelError {
    KernelError::Btf(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs wherever the kernel has type information; elsewhere the error says so.
    #[test]
    fn the_running_kernel_is_read_or_the_reason_given() {
        match offset("sock", "sk_shutdown") {
            Ok(at) => assert!((64..2048).contains(&at), "{at}"),
            Err(error) => assert!(error.to_string().contains(VMLINUX), "{error}"),
        }
    }
}
