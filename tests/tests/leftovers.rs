//! Agents that are killed, and agents that may not do their work: what stays is removed, what fails says why.

use std::process::Command;
use std::time::Duration;

use retry_tests::{cgroup, process, require, scratch_file, wait};

#[test]
fn cleanup_removes_the_cgroup_of_a_killed_agent_and_spares_its_command() {
    let Some(agent) = require::agent() else { return };
    let ready = scratch_file("ready");
    let line = format!("touch {}; exec sleep 20 < /dev/null > /dev/null 2>&1", ready.display());
    let mut exec = agent.command(&["exec", "--", "sh", "-c", &line]);
    let running = process::Running::start(&mut exec);
    let name = format!("retry-agent-exec-{}", running.id());
    wait::until("the command is ready", || ready.exists());
    let [folder] = &cgroup::children_named(&name)[..] else { panic!("no cgroup {name}") };
    let processes = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap();
    let command: i32 = processes.trim().parse().expect("one process in the cgroup");
    running.signal(libc::SIGKILL);
    running.wait(Duration::from_secs(5));
    assert!(folder.exists(), "a killed agent cannot remove it");
    let ended = process::run(&mut agent.command(&["cleanup"]));
    ended.assert_success();
    assert!(ended.stdout.contains(&name), "{ended:?}");
    assert!(!folder.exists());
    let alive = std::fs::read_to_string(format!("/proc/{command}/comm")).unwrap_or_default();
    assert_eq!(alive.trim(), "sleep", "the command goes on");
    process::kill(command, libc::SIGKILL);
    let again = process::run(&mut agent.command(&["cleanup"]));
    assert_eq!(again.stdout, "nothing was left behind\n");
    std::fs::remove_file(ready).unwrap();
}

#[test]
fn cleanup_does_not_touch_what_a_running_agent_uses() {
    let Some(agent) = require::agent() else { return };
    let ready = scratch_file("ready");
    let line = format!("touch {}; exec sleep 20", ready.display());
    let running = process::Running::start(&mut agent.command(&["exec", "--", "sh", "-c", &line]));
    wait::until("the command is ready", || ready.exists());
    let ended = process::run(&mut agent.command(&["cleanup"]));
    assert!(!ended.status.success() && ended.stderr.contains(&running.id().to_string()), "{ended:?}");
    running.signal(libc::SIGTERM);
    running.wait(Duration::from_secs(5));
    std::fs::remove_file(ready).unwrap();
}

#[test]
fn without_its_capabilities_every_verb_says_so_in_one_line() {
    let Some(agent) = require::agent() else { return };
    for verb in [&["exec", "--", "true"][..], &["run"], &["verify"], &["cleanup"]] {
        let inner = agent.command(verb);
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-bpf,-net_admin,-sys_admin", "--"]);
        command.arg(inner.get_program()).args(inner.get_args());
        let ended = process::run(&mut command);
        assert_eq!(ended.status.code(), Some(125), "{verb:?}: {ended:?}");
        let said = "retry-agent: this needs root; missing: CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_BPF\n";
        assert_eq!(ended.stderr, said, "{verb:?}");
    }
}
