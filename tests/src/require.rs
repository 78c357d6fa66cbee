//! What a kernel test needs of its machine. `cargo xtask test` says where the agent is; then everything that is
//! missing fails the test. Without it (a plain `cargo test --workspace`) and without the means to run, a test says
//! that it was left out.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::agent::Agent;
use crate::cgroup;

/// Names the binary under test.
const AGENT: &str = "RETRY_AGENT_BIN";
/// Names the folder of installed clients.
const CLIENTS: &str = "RETRY_CLIENTS";

/// The agent under test. Nothing, with a sentence on stderr, if nobody said which and this machine could not run
/// it anyway.
///
/// # Panics
/// When `RETRY_AGENT_BIN` is set and root, cgroup2 or the binary is missing.
pub fn agent() -> Option<Agent> {
    let wanted = env::var_os(AGENT).map(PathBuf::from);
    let asked = wanted.is_some();
    let path = wanted.unwrap_or_else(|| target().join("release/retry-agent"));
    let missing = if !is_root() {
        "kernel tests need root"
    } else if cgroup::mount().is_none() {
        "kernel tests need a mounted cgroup2"
    } else if !path.is_file() {
        "the agent is not built"
    } else {
        return Some(Agent::at(path));
    };
    assert!(!asked, "{missing} ({})", path.display());
    eprintln!("left out: {missing}; `cargo xtask test` runs everything");
    None
}

/// The folder of the installed clients.
///
/// # Panics
/// When they are not installed.
pub fn clients() -> PathBuf {
    let folder = env::var_os(CLIENTS).map_or_else(|| target().join("clients"), PathBuf::from);
    assert!(
        folder.is_dir(),
        "the test clients are not installed in {}: run `cargo xtask setup`",
        folder.display()
    );
    folder
}

/// Insists on a program of the system.
///
/// # Panics
/// When it cannot be started.
pub fn program(name: &str, package: &str) {
    let started = Command::new(name).arg("--version").output();
    assert!(started.is_ok(), "{name} is missing: install the Debian package {package}");
}

/// A program of this package, which cargo builds beside the tests.
///
/// # Panics
/// When it was not built.
pub fn own_program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    let path =
        test.parent().and_then(|deps| deps.parent()).expect("tests are built in target/…/deps").join(name);
    assert!(path.is_file(), "{} is not built", path.display());
    path
}

/// The package's folder of client programs.
pub fn client_sources() -> PathBuf {
    manifest().join("clients")
}

fn manifest() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

fn target() -> PathBuf {
    manifest().join("../target")
}

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
