//! The test runners: the executables that `cargo test --no-run` built, run one after the other.
//!
//! One build of the whole workspace serves both the user-space and the kernel tests. Two `cargo test` calls with
//! different packages would not: cargo chooses the features of dependencies by the packages it is asked for, and
//! would build tokio and its kin once for each.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::build::SKIP_KERNEL_OBJECT;
use crate::{paths, process};

/// How long one runner may take; the slowest take about a minute, so one that is past this hangs.
const RUNNER_LIMIT: Duration = Duration::from_secs(600);

/// How long a runner's output may stay open after its end: only a process it left behind holds it.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

/// One executable with tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Runner {
    pub package: String,
    pub name: String,
    pub executable: PathBuf,
    /// The package's folder, which cargo makes the working directory of its tests.
    pub folder: PathBuf,
}

/// What a runner said.
#[derive(Debug)]
pub struct TestOutput {
    pub runner: String,
    pub succeeded: bool,
    /// Its `test result:` lines; the documentation's runner has one for each package.
    pub closing_lines: Vec<String>,
}

impl TestOutput {
    /// Tests that passed.
    pub fn passed(&self) -> u64 {
        self.closing_lines.iter().map(|line| count(line, "passed")).sum()
    }

    /// Tests that failed.
    pub fn failed(&self) -> u64 {
        self.closing_lines.iter().map(|line| count(line, "failed")).sum()
    }
}

/// Builds every test of the workspace and names the runners.
///
/// # Errors
/// When something does not compile.
pub fn build() -> Result<Vec<Runner>> {
    let mut cargo = process::cargo();
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    cargo.env(SKIP_KERNEL_OBJECT, "1").stderr(Stdio::inherit());
    let output = cargo.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile");
    }
    let mut runners: Vec<Runner> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(runner_of).collect();
    // Cargo reports them as they are finished, which differs from run to run.
    runners.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    Ok(runners)
}

/// Runs the examples in the documentation.
///
/// # Errors
/// When cargo cannot be started or hangs.
pub fn documentation(args: &[String]) -> Result<TestOutput> {
    let mut cargo = process::cargo();
    cargo.args(["test", "--workspace", "--doc", "--"]).args(args).env(SKIP_KERNEL_OBJECT, "1");
    watch("documentation".to_owned(), &mut cargo)
}

impl Runner {
    /// Runs it with its output on ours.
    ///
    /// # Errors
    /// When it cannot be started or hangs.
    pub fn run(&self, args: &[String]) -> Result<TestOutput> {
        println!("-- {}/{}", self.package, self.name);
        let mut command = process::command(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("RETRY_AGENT_BIN", paths::agent()).env("RETRY_CLIENTS", paths::clients());
        watch(format!("{}/{}", self.package, self.name), command.args(args))
    }
}

/// The messages of `cargo test --message-format=json`, as far as they matter here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    package_id: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

fn runner_of(line: &str) -> Option<Runner> {
    let message: Message = serde_json::from_str(line).ok()?;
    if message.reason != "compiler-artifact" || !message.profile?.test {
        return None;
    }
    Some(Runner {
        package: package_name(&message.package_id?)?,
        name: message.target?.name,
        executable: message.executable?,
        folder: message.manifest_path?.parent().map(Path::to_path_buf)?,
    })
}

/// The name in a package id: `path+file:///x/tests#retry-tests@0.1.0`, or `path+file:///x/xtask#0.1.0` where
/// the folder is called like the package.
fn package_name(id: &str) -> Option<String> {
    let (path, fragment) = id.rsplit_once('#')?;
    match fragment.split_once('@') {
        Some((name, _)) => Some(name.to_owned()),
        None => path.rsplit('/').next().map(str::to_owned),
    }
}

fn watch(runner: String, command: &mut Command) -> Result<TestOutput> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start the tests of {runner}"))?;
    let stdout = child.stdout.take().context("a child's output was not connected")?;
    let lines = relay(stdout);
    let status = wait(&mut child).with_context(|| format!("the tests of {runner} did not come to an end"))?;
    let Ok(closing_lines) = lines.recv_timeout(OUTPUT_GRACE) else {
        bail!("the tests of {runner} left a process running that holds their output");
    };
    Ok(TestOutput { runner, succeeded: status.success(), closing_lines })
}

/// Passes a child's output on while it runs; gives the closing lines at its end.
fn relay(stdout: ChildStdout) -> Receiver<Vec<String>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut closing = Vec::new();
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            println!("{line}");
            if line.starts_with("test result:") {
                closing.push(line);
            }
        }
        // Nobody receives any more when the watcher gave up first.
        let _ = sender.send(closing);
    });
    receiver
}

fn wait(child: &mut Child) -> Result<ExitStatus> {
    let deadline = Instant::now() + RUNNER_LIMIT;
    loop {
        if let Some(status) = child.try_wait().context("cannot ask for a child's status")? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            child.kill().context("cannot end a child")?;
            child.wait().context("cannot wait for a child")?;
            bail!("ended after {} s; the last test named above hangs", RUNNER_LIMIT.as_secs());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The number before `word` in a closing line.
fn count(line: &str, word: &str) -> u64 {
    line.split(['.', ';'])
        .filter_map(|part| part.trim().split_once(' '))
        .find(|(_, what)| *what == word)
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSING: &str =
        "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.41s";

    #[test]
    fn closing_lines_are_counted() {
        assert_eq!((count(CLOSING, "passed"), count(CLOSING, "failed")), (12, 3));
        assert_eq!(count("test result: ok", "passed"), 0);
    }

    #[test]
    fn package_names_are_read_from_both_forms_of_id() {
        assert_eq!(package_name("path+file:///x/tests#retry-tests@0.1.0").as_deref(), Some("retry-tests"));
        assert_eq!(package_name("path+file:///x/xtask#0.1.0").as_deref(), Some("xtask"));
        assert_eq!(package_name("no id"), None);
    }

    #[test]
    fn only_test_executables_are_runners() {
        let message = |reason: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"{reason}","package_id":"path+file:///x/a#0.1.0","manifest_path":"/x/a/Cargo.toml",
                "target":{{"name":"deny"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let runner = runner_of(&message("compiler-artifact", true, r#""/t/deny-1""#)).unwrap();
        assert_eq!((runner.package.as_str(), runner.name.as_str()), ("a", "deny"));
        assert_eq!(runner.folder, Path::new("/x/a"));
        assert_eq!(runner_of(&message("compiler-artifact", false, r#""/t/deny-1""#)), None);
        assert_eq!(runner_of(&message("compiler-artifact", true, "null")), None);
        assert_eq!(runner_of(&message("build-finished", true, "null")), None);
        assert_eq!(runner_of("no json"), None);
    }

    #[test]
    fn the_status_and_the_closing_lines_of_a_runner_are_kept() {
        let script = format!("echo running; echo '{CLOSING}'; exit 101");
        let output = watch("x".to_owned(), process::command("sh").args(["-c", &script])).unwrap();
        assert!(!output.succeeded);
        assert_eq!(output.closing_lines, [CLOSING]);
        assert_eq!((output.passed(), output.failed()), (12, 3));
    }
}
