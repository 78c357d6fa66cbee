//! The processes of the two stories: Python programs below `demo/services`, each in a control group of its own.
//! Each has a console: a line on its standard input is a command, a line of JSON on its standard output the
//! answer. They know nothing of the agent.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cgroup::Cgroup;
use crate::interrupt;
use crate::place::Place;

/// How long a service may take to start or to answer its console.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a service may take to end by itself once its console is closed.
const FAREWELL: Duration = Duration::from_secs(2);

/// Moves itself into the group whose `cgroup.procs` is the first argument and becomes the command after it: the
/// program is in its group before its first instruction, and keeps its pid.
const ENTER: &str = r#"echo $$ > "$1" && shift && exec "$@""#;

/// A running service; it ends when it is dropped.
pub struct Service {
    name: String,
    child: Child,
    console: Option<ChildStdin>,
    lines: Receiver<String>,
}

/// What a server says when it is ready.
#[derive(Deserialize)]
struct Ready {
    port: u16,
}

/// An answer without content.
#[derive(Deserialize)]
pub struct Done {}

impl Service {
    /// Starts `script` in a control group.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(place: &Place, cgroup: &Cgroup, script: &str, args: &[String]) -> Result<Self> {
        let name = cgroup.name().split('/').skip(1).collect::<Vec<_>>().join("-");
        let log = place.log(&name);
        let log = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", ENTER, "sh"]).arg(cgroup.processes());
        // Unbuffered, and without leaving compiled files in the source tree.
        command.arg(&place.python).args(["-u", "-B"]).arg(place.service(script)).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        // Ctrl-C at the terminal is for the demo, which then ends its services in order.
        command.process_group(0);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let console = child.stdin.take();
        let output = child.stdout.take().context("a child without standard output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { name, child, console, lines })
    }

    /// Starts a server and gives the port on which it listens.
    ///
    /// # Errors
    /// When it cannot be started or does not say its port.
    pub fn serve(place: &Place, cgroup: &Cgroup, script: &str, args: &[String]) -> Result<(Self, u16)> {
        let service = Self::start(place, cgroup, script, args)?;
        let ready: Ready = service.next(PATIENCE)?;
        Ok((service, ready.port))
    }

    /// Gives a command and reads its answer.
    ///
    /// # Errors
    /// When the service is gone or does not answer.
    pub fn ask<T: DeserializeOwned>(&mut self, command: &str) -> Result<T> {
        let console = self.console.as_mut().context("a console that was closed")?;
        writeln!(console, "{command}").with_context(|| format!("cannot tell {} to {command}", self.name))?;
        self.next(PATIENCE)
    }

    /// The next line of the service, as soon as it comes.
    ///
    /// # Errors
    /// When the service ends, says something else, or nothing within `patience`.
    pub fn next<T: DeserializeOwned>(&self, patience: Duration) -> Result<T> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(said) = self.poll()? {
                return Ok(said);
            }
            if Instant::now() > deadline {
                bail!("{} said nothing for {} s", self.name, patience.as_secs());
            }
        }
    }

    /// The next line of the service, if one comes within a glance.
    ///
    /// # Errors
    /// When the service ends or says something else.
    pub fn poll<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        interrupt::check()?;
        match self.lines.recv_timeout(interrupt::GLANCE) {
            Ok(line) => {
                serde_json::from_str(&line).with_context(|| format!("{} said {line:?}", self.name)).map(Some)
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("{0} ended early; its last words are in logs/{0}.log", self.name)
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.console.take());
        let deadline = Instant::now() + FAREWELL;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                self.child.kill().ok();
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
