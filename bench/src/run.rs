//! One child from its start to its end, with a limit on how long that may take.

use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How long a child may take to end after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(10);

/// Runs `command` to its end and gives what it said.
///
/// # Errors
/// When it cannot be started, takes longer than `limit`, or ends otherwise than with status 0.
pub fn to_end(mut command: Command, what: &str, limit: Duration) -> Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {what}"))?;
    // What it says fits into a pipe, so nobody has to read before the end.
    if !ends_within(&mut child, limit)? {
        terminate(&mut child)?;
        bail!("{what} did not end within {} s", limit.as_secs());
    }
    let output = child.wait_with_output().with_context(|| format!("cannot read what {what} said"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{what} ended with {}; it said: {}", output.status, said.trim());
    }
    Ok(output)
}

fn ends_within(child: &mut Child, limit: Duration) -> Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        if child.try_wait().context("cannot ask for a child's status")?.is_some() {
            return Ok(true);
        }
        if Instant::now() > deadline {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// SIGTERM first: the agent then takes its programs and its cgroup away.
fn terminate(child: &mut Child) -> Result<()> {
    Command::new("kill").arg(child.id().to_string()).status().context("cannot run kill")?;
    if !ends_within(child, FAREWELL)? {
        child.kill().context("cannot kill a child")?;
        child.wait().context("cannot wait for a child")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_child_said_is_given_at_its_end() {
        let output = to_end(shell("echo one"), "a shell", Duration::from_secs(10)).unwrap();
        assert_eq!(output.stdout, b"one\n");
    }

    #[test]
    fn a_failure_says_what_the_child_said() {
        let error = to_end(shell("echo why >&2; exit 3"), "a shell", Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.to_string(), "a shell ended with exit status: 3; it said: why");
    }

    #[test]
    fn a_child_that_does_not_end_is_ended() {
        let error = to_end(shell("exec sleep 60"), "a shell", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.to_string(), "a shell did not end within 0 s");
    }
}
