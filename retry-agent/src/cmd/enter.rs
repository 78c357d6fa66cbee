//! `enter`: the child's side of `exec`. Joins the cgroup before it becomes the command, so that not one
//! connect of the command is missed.
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use super::OWN_FAILURE;
use crate::cgroup;

/// As shells have it.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

pub(super) fn run(folder: &Path, command: &[OsString]) -> ExitCode {
    if let Err(error) = cgroup::join(folder) {
        eprintln!("retry-agent: {error}");
        return ExitCode::from(OWN_FAILURE);
    }
    let Some((program, args)) = command.split_first() else { return ExitCode::from(NOT_FOUND) };
    let error = Command::new(program).args(args).exec();
    eprintln!("retry-agent: cannot run {}: {error}", program.display());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
}
