//! Children with a deadline, and what they said.

use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::wait;

/// How long one child may run unless a test says otherwise.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A child that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Insists on status 0.
    ///
    /// # Panics
    /// When it is another; the message has everything the child said.
    #[track_caller]
    pub fn assert_success(&self) {
        assert!(self.status.success(), "{}: stdout {} stderr {}", self.status, self.stdout, self.stderr);
    }
}

/// A running child in a process group of its own, ended for good when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    said: Option<(JoinHandle<String>, JoinHandle<String>)>,
    what: String,
}

impl Running {
    /// Starts a child that reads nothing.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let what = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        let stdout = listen(child.stdout.take().expect("was piped"));
        let stderr = listen(child.stderr.take().expect("was piped"));
        Self { child, said: Some((stdout, stderr)), what }
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is still running.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to the child alone.
    pub fn signal(&self, signal: i32) {
        kill(self.child.id().cast_signed(), signal);
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When it does not come within `limit`; the child is then killed and the message has what it said.
    #[track_caller]
    pub fn wait(mut self, limit: Duration) -> Ended {
        let status = wait::within(limit, || self.child.try_wait().expect("a child can be waited for"));
        if status.is_none() {
            self.kill_group();
        }
        let (stdout, stderr) = self.said.take().expect("taken once");
        let text = |said: JoinHandle<String>| said.join().unwrap_or_default();
        let (stdout, stderr) = (text(stdout), text(stderr));
        match status {
            Some(status) => Ended { status, stdout, stderr },
            None => panic!("hung for {limit:?}: {}\nstdout {stdout}\nstderr {stderr}", self.what),
        }
    }

    fn kill_group(&mut self) {
        kill(-self.child.id().cast_signed(), libc::SIGKILL);
        // It may have left its group; a killed child can always be waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_alive() {
            self.kill_group();
        }
    }
}

/// Runs a child to its end.
///
/// # Panics
/// When it cannot be started or hangs.
#[track_caller]
pub fn run(command: &mut Command) -> Ended {
    Running::start(command).wait(LIMIT)
}

/// The signal that ended a child, as a shell counts it: 128 + n.
pub fn shell_status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Sends a signal; that the process is already gone is no mistake.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

fn listen(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A child that dies in the middle of a line still said what it said.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
