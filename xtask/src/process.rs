//! Running other programs: every command xtask starts goes through here, so that each failure reads the same
//! way (what was attempted, with which command, how it ended).

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::host;
use crate::paths;
use crate::progress::Step;

/// How many of the last lines of a failed tool are shown.
const TAIL_LINES: usize = 12;

/// A command in the workspace's folder, without what `cargo run` put into the environment for xtask itself.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(paths::root()).stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    if let Some(folders) = env::var_os("LD_LIBRARY_PATH") {
        match own_library_folders(&folders) {
            Some(own) => command.env("LD_LIBRARY_PATH", own),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
    }
    command
}

/// A command that Debian keeps among the administrators' programs, where an ordinary search path does not look.
pub fn system_command(name: &str) -> Command {
    command(host::find_command(name).unwrap_or_else(|| PathBuf::from(name)))
}

/// What was in `LD_LIBRARY_PATH` before cargo: its own entries lead to the stable compiler's LLVM, which
/// bpf-linker must not find before nightly's.
fn own_library_folders(folders: &OsStr) -> Option<OsString> {
    let rustup = env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let is_cargos = |folder: &PathBuf| {
        folder.starts_with(paths::target()) || rustup.as_ref().is_some_and(|home| folder.starts_with(home))
    };
    let own = env::join_paths(env::split_paths(folders).filter(|folder| !is_cargos(folder))).ok()?;
    (!own.is_empty()).then_some(own)
}

/// Cargo of the workspace's own (stable) toolchain.
pub fn cargo() -> Command {
    let mut command = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.env("CARGO_TARGET_DIR", paths::target());
    command
}

/// Cargo of the nightly toolchain, which only the kernel side needs.
pub fn cargo_nightly() -> Command {
    let mut command = command("cargo");
    command.arg("+nightly").env("CARGO_TARGET_DIR", paths::target());
    command
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
    std::iter::once(name)
        .chain(command.get_args().map(|arg| arg.to_string_lossy().into_owned()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command with its output on ours.
///
/// # Errors
/// When it cannot be started, or ends otherwise than with status 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    require_success(command, status)
}

/// Runs a command and gives its standard output; its standard error is shown only when it fails.
///
/// # Errors
/// As [`run`].
pub fn capture(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
    }
    require_success(command, output.status)?;
    String::from_utf8(output.stdout).with_context(|| format!("output of `{}` is no UTF-8", shown(command)))
}

/// Runs a command silently and says whether it could be started and ended with status 0.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a command that takes long below a progress line. Its output goes to `target/setup/<log>.log`; the last
/// lines of it are shown when the command fails.
///
/// # Errors
/// As [`run`].
pub fn run_in_step(what: &str, log: &str, mut command: Command) -> Result<()> {
    let step = Step::begin(what);
    match logged(&step, log, &mut command) {
        Ok(()) => {
            step.end();
            Ok(())
        }
        Err(error) => {
            step.fail();
            Err(error.context(format!("{what} failed")))
        }
    }
}

fn logged(step: &Step, log: &str, command: &mut Command) -> Result<()> {
    fs::create_dir_all(paths::setup()).context("cannot make the folder for set-up logs")?;
    let path = paths::setup().join(format!("{log}.log"));
    let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    command.stdout(writer.try_clone().context("cannot share a pipe")?).stderr(writer);
    let child = command.spawn().with_context(|| format!("cannot start `{}`", shown(command)));
    // The command keeps the pipe's writing ends; the reading end would otherwise never see the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child?;
    let mut tail = Vec::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line.context("cannot read a tool's output")?).into_owned();
        writeln!(file, "{line}").with_context(|| format!("cannot write {}", path.display()))?;
        step.show(line.trim());
        if !line.trim().is_empty() {
            tail.push(line);
            tail.drain(..tail.len().saturating_sub(TAIL_LINES));
        }
    }
    let status = child.wait().with_context(|| format!("cannot wait for `{}`", shown(command)))?;
    if !status.success() {
        eprintln!("    {}", tail.join("\n    "));
    }
    require_success(command, status).with_context(|| format!("its output is in {}", path.display()))
}

fn require_success(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_its_end() {
        let error = run(command("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "`sh -c exit 3` ended with exit status: 3");
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let error = capture(&mut command("/nowhere/no-such-tool")).unwrap_err().to_string();
        assert_eq!(error, "cannot start `no-such-tool`");
    }

    #[test]
    fn cargos_own_library_folders_are_not_passed_on() {
        let cargos = paths::target().join("debug");
        let mixed = format!("{}:/opt/lib", cargos.display());
        assert_eq!(own_library_folders(OsStr::new(&mixed)), Some(OsString::from("/opt/lib")));
        assert_eq!(own_library_folders(cargos.as_os_str()), None);
    }

    #[test]
    fn standard_output_is_captured() {
        assert_eq!(capture(command("sh").args(["-c", "echo one; echo two >&2"])).unwrap(), "one\n");
    }
}
