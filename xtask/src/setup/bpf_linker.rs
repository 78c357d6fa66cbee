//! bpf-linker: links the kernel object from LLVM bitcode.

use anyhow::Result;

use super::present;
use crate::process;

/// The last version that loads the compiler's own LLVM at run time; later ones want LLVM's development files.
const VERSION: &str = "0.10.4";

/// Installs bpf-linker when it is missing or of another version.
///
/// # Errors
/// When cargo cannot build it.
pub fn ensure() -> Result<()> {
    let found = process::command("bpf-linker").arg("--version").output();
    if found.is_ok_and(|output| is_version(&String::from_utf8_lossy(&output.stdout))) {
        present(&format!("bpf-linker {VERSION}"));
        return Ok(());
    }
    let mut install = process::cargo_nightly();
    // In its own target folder, as cargo would do by itself without CARGO_TARGET_DIR.
    install.env_remove("CARGO_TARGET_DIR");
    install.args(["install", "bpf-linker", "--version", VERSION, "--locked", "--force"]);
    process::run_in_step(&format!("installing bpf-linker {VERSION} (about a minute)"), "bpf-linker", install)
}

fn is_version(output: &str) -> bool {
    output.split_whitespace().eq(["bpf-linker", VERSION])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_version_will_do() {
        assert!(is_version("bpf-linker 0.10.4\n"));
        assert!(!is_version("bpf-linker 0.10.41\n"));
        assert!(!is_version(""));
    }
}
