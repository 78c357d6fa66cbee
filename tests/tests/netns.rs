//! Other networks than the loopback: namespaces joined by veth pairs, address translation in between, loss. Denials
//! stay clean, connection tracking sees nothing invalid, nothing hangs.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use retry_tests::agent::{Agent, Finished};
use retry_tests::netns::{self, Netns};
use retry_tests::origin::{Origin, Reply};
use retry_tests::wire::{self, Act, Saw, Script};
use retry_tests::{require, scratch_file, wait};
use serde_json::Value;

const FAILS: &str = "POST /fails HTTP/1.1\r\nHost: far\r\nContent-Length: 4\r\n\r\nbody";
const HEALTHY: &str = "GET /healthy HTTP/1.1\r\nHost: far\r\n\r\n";

/// A client's and a server's namespace, joined, with addresses of both families.
struct Pair {
    client: Netns,
    server: Netns,
}

impl Pair {
    fn new() -> Self {
        Self::of(Netns::new(), Netns::new())
    }

    fn of(client: Netns, server: Netns) -> Self {
        netns::join(netns::end(&client, "c0", "10.81.0.1/24"), netns::end(&server, "s0", "10.81.0.2/24"));
        client.ip("addr add fd81::1/64 dev c0 nodad");
        server.ip("addr add fd81::2/64 dev s0 nodad");
        Self { client, server }
    }

    fn origin(&self, address: &str) -> Origin {
        let origin = Origin::inside(&self.server, address.parse().unwrap());
        origin.plan("/fails", Reply::status(503));
        origin
    }
}

/// A call that fails, its retry on the same connection, on a new one, and a healthy call.
fn calls(to: SocketAddr) -> Script {
    let again = Script::to(to).exchange(FAILS).exchange(FAILS).then(Act::End);
    let all = again.connect(to).exchange(FAILS).then(Act::End).connect(to).exchange(HEALTHY);
    // Long enough for the acknowledgements that the client delays (40 ms), which nobody behind the device may see.
    all.then(Act::TryAnswer { limit_ms: 150 })
}

/// Status and giver of every answer.
fn answers(finished: &Finished) -> Vec<(u16, bool)> {
    let saw = wire::saw(&finished.ended.stdout);
    let answer = |saw: &Saw| match saw {
        Saw::Answer(answer) => Some((answer.status, answer.denied_by().is_some())),
        _ => None,
    };
    saw.iter().filter_map(answer).collect()
}

/// The calls went as they should, and the server saw two whole requests and no other byte.
fn assert_denied_cleanly(finished: &Finished, asked: SocketAddr, origin: &Origin) {
    assert_eq!(answers(finished), [(503, false), (503, true), (503, true), (200, false)], "{finished:#?}");
    let edge = finished.edge(asked);
    assert_eq!((edge.attempts, edge.denied, edge.uncovered), (4, 2, 0), "{edge:#?}");
    origin.wait_for_ends();
    assert_eq!((origin.requests().len(), origin.stray_bytes()), (2, 0));
}

fn deny(agent: &Agent, inner: &Command) -> Finished {
    agent.enforce("none").run_well(inner)
}

#[test]
fn a_denial_over_veth_is_clean_in_ipv4_and_ipv6() {
    let Some(agent) = require::agent() else { return };
    for address in ["10.81.0.2", "fd81::2"] {
        let pair = Pair::new();
        let origin = pair.origin(address);
        let script = pair.client.command(&calls(origin.address()).command());
        assert_denied_cleanly(&deny(&agent, &script), origin.address(), &origin);
    }
}

#[test]
fn a_denial_is_clean_when_the_agent_itself_lives_in_the_namespace() {
    let Some(agent) = require::agent() else { return };
    let pair = Pair::new();
    let origin = pair.origin("10.81.0.2");
    let report = scratch_file("report");
    let exec = agent.enforce("none").command(&calls(origin.address()).command(), &report);
    let ended = retry_tests::process::run(&mut pair.client.command(&exec));
    ended.assert_success();
    let text = fs::read_to_string(&report).unwrap();
    fs::remove_file(&report).unwrap();
    let report = retry_tests::agent::Report::parse(&text).unwrap();
    assert_denied_cleanly(&Finished { ended, report }, origin.address(), &origin);
}

#[test]
fn a_denial_through_a_bridge_is_clean() {
    let Some(agent) = require::agent() else { return };
    let (client, server) = (Netns::new(), Netns::new());
    netns::join(netns::end(&client, "port", "10.84.9.1/24"), netns::end(&server, "s0", "10.84.0.2/24"));
    client.ip("link add br0 type bridge");
    client.ip("link set port master br0");
    client.ip("addr add 10.84.0.1/24 dev br0");
    client.ip("link set br0 up");
    let origin = Origin::inside(&server, "10.84.0.2".parse().unwrap());
    origin.plan("/fails", Reply::status(503));
    let finished = deny(&agent, &client.command(&calls(origin.address()).command()));
    assert_denied_cleanly(&finished, origin.address(), &origin);
}

#[test]
fn a_v4_mapped_address_is_the_ipv4_destination() {
    let Some(agent) = require::agent() else { return };
    let pair = Pair::new();
    let origin = pair.origin("10.81.0.2");
    let mapped: SocketAddr = format!("[::ffff:10.81.0.2]:{}", origin.address().port()).parse().unwrap();
    let finished = deny(&agent, &pair.client.command(&calls(mapped).command()));
    assert_denied_cleanly(&finished, origin.address(), &origin);
}

#[test]
fn a_denial_over_the_ipv6_loopback_is_clean() {
    let Some(agent) = require::agent() else { return };
    let origin = Origin::start_v6();
    origin.plan("/fails", Reply::status(503));
    assert_denied_cleanly(&deny(&agent, &calls(origin.address()).command()), origin.address(), &origin);
}

#[test]
fn a_namespace_made_after_the_start_is_found() {
    let Some(agent) = require::agent() else { return };
    let (pid, ready) = (scratch_file("pid"), scratch_file("ready"));
    let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
    let call = Script::to(address).exchange(FAILS).connect(address).exchange(FAILS).command();
    let script = scratch_file("script");
    let quoted: Vec<String> = call.get_args().map(|act| format!("'{}'", act.to_string_lossy())).collect();
    fs::write(&script, format!("exec {} {}", call.get_program().to_string_lossy(), quoted.join(" ")))
        .unwrap();
    // Until the agent has found the namespace its flows are uncovered and pass; it gets 200 tries.
    let inner = format!(
        "ip link set lo up; echo $$ > {pid}.part; mv {pid}.part {pid}; until [ -e {ready} ]; do sleep 0.01; done; \
         for n in $(seq 200); do out=$(sh {script}); \
         case $out in *x-retry-denied*) echo found; exit 0;; esac; sleep 0.02; done; echo lost",
        pid = pid.display(),
        ready = ready.display(),
        script = script.display(),
    );
    let mut command = Command::new("unshare");
    let started = agent.enforce("none").start(command.args(["--net", "sh", "-c", &inner]));
    let process = wait::until_some("the new namespace", || fs::read_to_string(&pid).ok());
    let namespace = format!("/proc/{}/ns/net", process.trim());
    let origin = netns::inside(Path::new(&namespace), || Origin::at(address));
    origin.plan("/fails", Reply::status(503));
    fs::write(&ready, "").unwrap();
    let finished = started.finish();
    for file in [pid, ready, script] {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(finished.ended.stdout.trim(), "found", "{finished:#?}");
    let edge = finished.edge(address);
    assert_eq!(edge.denied + edge.uncovered, edge.all_retries(), "{edge:#?}");
}

#[test]
fn a_flow_on_a_device_without_our_program_passes_and_is_counted() {
    let Some(agent) = require::agent() else { return };
    // Neither a name nor a process of the command leads the agent to the client's namespace.
    let pair = Pair::of(Netns::unnamed(), Netns::new());
    let origin = pair.origin("10.81.0.2");
    let open = |script: Script| {
        let connect = Act::ConnectInside { netns: pair.client.path(), to: origin.address() };
        script.then(connect).exchange(FAILS)
    };
    let finished = deny(&agent, &open(open(Script::default())).command());
    assert_eq!(answers(&finished), [(503, false), (503, false)]);
    let edge = finished.edge(origin.address());
    assert_eq!((edge.all_retries(), edge.denied, edge.uncovered), (1, 0, 1), "{edge:#?}");
}

/// Translates 10.96.0.1:80 in the hook of this namespace, and counts what connection tracking finds invalid.
fn translate(netns: &Netns, hook: &str, to: SocketAddr) {
    let rules = format!(
        "table ip test {{
            chain translate {{ type nat hook {hook} priority -100; ip daddr 10.96.0.1 tcp dport 80 dnat to {to}; }}
            chain hide {{ type nat hook postrouting priority 100; ct status dnat masquerade; }}
            chain incoming {{ type filter hook input priority 0; ct state invalid counter drop; }}
            chain outgoing {{ type filter hook output priority 0; ct state invalid counter drop; }}
            chain forwarded {{ type filter hook forward priority 0; ct state invalid counter drop; }}
        }}"
    );
    load(netns, &rules);
}

fn load(netns: &Netns, rules: &str) {
    let file = scratch_file("nft");
    fs::write(&file, rules).unwrap();
    netns.run(&format!("nft -f {}", file.display()));
    fs::remove_file(&file).unwrap();
}

/// Packets that were counted by any rule of the namespace.
fn counted(netns: &Netns) -> u64 {
    let ruleset: Value = serde_json::from_str(&netns.run("nft -j list ruleset")).unwrap();
    let rules =
        ruleset["nftables"].as_array().unwrap().iter().filter_map(|item| item["rule"]["expr"].as_array());
    rules.flatten().filter_map(|part| part["counter"]["packets"].as_u64()).sum()
}

const SERVICE: &str = "10.96.0.1:80";

#[test]
fn a_denial_behind_translation_in_the_same_namespace_is_clean() {
    let Some(agent) = require::agent() else { return };
    let pair = Pair::new();
    let (origin, service) = (pair.origin("10.81.0.2"), SERVICE.parse().unwrap());
    pair.client.ip("route add default via 10.81.0.2");
    translate(&pair.client, "output", origin.address());
    let finished = deny(&agent, &pair.client.command(&calls(service).command()));
    assert_denied_cleanly(&finished, service, &origin);
    assert_eq!(counted(&pair.client), 0, "connection tracking found invalid packets");
}

#[test]
fn a_denial_behind_translation_in_a_router_is_clean() {
    let Some(agent) = require::agent() else { return };
    let (client, router, server) = (Netns::new(), Netns::new(), Netns::new());
    netns::join(netns::end(&client, "c0", "10.82.0.2/24"), netns::end(&router, "r0", "10.82.0.1/24"));
    netns::join(netns::end(&router, "r1", "10.83.0.1/24"), netns::end(&server, "s0", "10.83.0.2/24"));
    client.ip("route add default via 10.82.0.1");
    router.run("sysctl -qw net.ipv4.ip_forward=1");
    let server_address: IpAddr = "10.83.0.2".parse().unwrap();
    let (origin, service) = (Origin::inside(&server, server_address), SERVICE.parse().unwrap());
    origin.plan("/fails", Reply::status(503));
    translate(&router, "prerouting", origin.address());
    let finished = deny(&agent, &client.command(&calls(service).command()));
    assert_denied_cleanly(&finished, service, &origin);
    assert_eq!(counted(&router), 0, "connection tracking found invalid packets");
}

/// Sixteen threads over a bad network, with retries that are denied above 30: nothing hangs or breaks, and agent,
/// client and server count the same.
fn hammer(agent: &Agent, pair: &Pair) {
    const THREADS: u64 = 16;
    const CALLS: u64 = 8;
    let origin = pair.origin("10.81.0.2");
    for netns in [&pair.client, &pair.server] {
        // Every eleventh packet that arrives, answers made by the agent included.
        load(
            netns,
            "table inet test { chain loss { type filter hook prerouting priority -300; \
            meta l4proto tcp numgen inc mod 11 == 0 counter drop; }\n}",
        );
    }
    let mut hammer = Command::new(require::own_program("hammer"));
    let (threads, calls) = (THREADS.to_string(), CALLS.to_string());
    hammer.args([&*origin.address().to_string(), &threads, &calls, "3", "/fails?n="]);
    let finished = agent.enforce("token_pool=30,refill=1/s").run_well(&pair.client.command(&hammer));
    let said: Value = serde_json::from_str(&finished.ended.stdout).unwrap();
    assert_eq!(said["broken"].as_array().unwrap().len(), 0, "{said:#?}");
    let edge = finished.edge(origin.address());
    let (attempts, calls) = (THREADS * CALLS * 3, THREADS * CALLS);
    assert_eq!((edge.attempts, edge.calls, edge.denied), (attempts, calls, 2 * calls - 30), "{edge:#?}");
    assert_eq!(origin.requests().len() as u64, calls + 30);
    assert!(counted(&pair.client) > 20 && counted(&pair.server) > 20, "too few packets were lost");
}

#[test]
fn lost_packets_hang_nothing_and_are_counted_once() {
    let Some(agent) = require::agent() else { return };
    hammer(&agent, &Pair::new());
}

/// Needs a kernel with netem: `cargo xtask vm` runs it in several.
#[test]
fn late_reordered_and_doubled_packets_hang_nothing_and_are_counted_once() {
    let Some(agent) = require::agent() else { return };
    let pair = Pair::new();
    for (netns, device) in [(&pair.client, "c0"), (&pair.server, "s0")] {
        let netem = "netem delay 4ms 2ms reorder 25% 50% duplicate 10% loss 2%";
        let line = format!("tc qdisc add dev {device} root {netem}");
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        let ended = retry_tests::process::run(&mut netns.command(command.args(words)));
        if !ended.status.success() {
            assert!(ended.stderr.contains("qdisc kind is unknown"), "{}", ended.stderr);
            eprintln!("left out: this kernel has no netem; `cargo xtask vm` runs it in kernels that do");
            return;
        }
    }
    hammer(&agent, &pair);
}
