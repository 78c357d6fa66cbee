//! Where things are: the one place that turns "the workspace" and "the target folder" into paths, so that a
//! moved target folder (`CARGO_TARGET_DIR`) moves everything that set-up and tests leave behind with it.

use std::env;
use std::path::{Path, PathBuf};

/// The folder that holds the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// Cargo's target folder, absolute, also when `CARGO_TARGET_DIR` is relative to the caller's folder.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => std::path::absolute(&dir).unwrap_or_else(|_| root().join(dir)),
        _ => root().join("target"),
    }
}

/// The test clients that set-up installed; the tests and the demo find it in `RETRY_CLIENTS`.
pub fn clients() -> PathBuf {
    target().join("clients")
}

/// Logs and scratch folders of the set-up steps.
pub fn setup() -> PathBuf {
    target().join("setup")
}

/// The release binary with the kernel object embedded; the tests and the demo find it in `RETRY_AGENT_BIN`.
pub fn agent() -> PathBuf {
    target().join("release").join("retry-agent")
}
