//! What this process may do, asked before anything is tried: a refusal in the middle would name a map, not the cause.
use std::fs;

use super::KernelError;

/// Capabilities by their number in `include/uapi/linux/capability.h`: programs, devices, namespaces.
const NEEDED: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN"), (39, "CAP_BPF")];

/// Whether programs may be loaded and attached.
///
/// # Errors
/// When a capability is missing.
pub fn check() -> Result<(), KernelError> {
    // Without the file nothing is known, and the kernel has the last word anyway.
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return Ok(()) };
    let missing = missing(&status);
    if missing.is_empty() { Ok(()) } else { Err(KernelError::Privileges(missing.join(", "))) }
}

fn missing(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(u64::MAX);
    NEEDED.iter().filter(|(bit, _)| held >> bit & 1 == 0).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(missing("CapEff:\t0000000000000000\n").len(), NEEDED.len());
        assert_eq!(missing("CapEff:\t0000017fffffffff\n"), ["CAP_BPF"]);
        assert!(missing("CapEff:\t000001ffffffffff\n").is_empty());
        assert!(missing("").is_empty());
    }
}
