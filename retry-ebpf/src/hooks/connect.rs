//! `cgroup/connect4` and `cgroup/connect6`: an application calls `connect()`.
//!
//! Runs in the caller's process. Returns 1 to go on, 0 to refuse: with ECONNREFUSED, as an application would
//! see it from a closed port. The socket gets its storage here; a socket whose first connect failed may come
//! again and starts over.
use crate::fail::passed;
use crate::socket::{now_ms, storage};
use crate::stages::attempt::{Bench, charged, connect_fingerprint};
use crate::stages::edge::{EdgeRef, config, policy};
use aya_ebpf::helpers::generated::{bpf_get_current_cgroup_id, bpf_get_current_pid_tgid, bpf_set_retval};
use aya_ebpf::macros::cgroup_sock_addr;
use aya_ebpf::programs::SockAddrContext;
use retry_common::abi::{Connection, EdgeCounter, EdgeKey, Fail, names};
use retry_common::judge::Verdict;
use retry_common::recogniser::Evidence;

const SOCK_STREAM: u32 = 1;
const IPPROTO_TCP: u32 = 6;
const ECONNREFUSED: i32 = 111;

/// An IPv4 `connect()` begins.
#[cgroup_sock_addr(connect4)]
pub fn begin_connect4(ctx: SockAddrContext) -> i32 {
    // SAFETY: context fields.
    let (address, port) = unsafe { ((*ctx.sock_addr).user_ip4, (*ctx.sock_addr).user_port) };
    begin(&ctx, names::CONNECT4, |workload| EdgeKey::v4(workload, address, u16::from_be(port as u16)))
}

/// An IPv6 `connect()` begins; also to an IPv4-mapped address.
#[cgroup_sock_addr(connect6)]
pub fn begin_connect6(ctx: SockAddrContext) -> i32 {
    // SAFETY: context fields, read word by word as the verifier asks.
    let (address, port) = unsafe {
        let from = &raw const (*ctx.sock_addr).user_ip6;
        let word = |at: usize| core::ptr::read_volatile(from.cast::<u32>().add(at));
        ([word(0), word(1), word(2), word(3)], (*ctx.sock_addr).user_port)
    };
    begin(&ctx, names::CONNECT6, |workload| EdgeKey::v6(workload, address, u16::from_be(port as u16)))
}

#[inline(always)]
fn begin(ctx: &SockAddrContext, hook: &str, key: impl FnOnce(u64) -> EdgeKey) -> i32 {
    // SAFETY: context fields.
    let (kind, protocol) = unsafe { ((*ctx.sock_addr).type_, (*ctx.sock_addr).protocol) };
    if kind != SOCK_STREAM || protocol != IPPROTO_TCP {
        return 1;
    }
    // SAFETY: a helper without arguments.
    let workload = unsafe { bpf_get_current_cgroup_id() };
    match try_begin(ctx, key(workload)) {
        Ok(Verdict::Deny) => {
            // SAFETY: takes a number.
            unsafe { bpf_set_retval(-ECONNREFUSED) };
            0
        }
        Ok(_) => 1,
        Err(fail) => {
            passed(ctx, hook, fail);
            1
        }
    }
}

#[inline(always)]
fn try_begin(ctx: &SockAddrContext, mut key: EdgeKey) -> Result<Verdict, Fail> {
    let Some(config) = config() else { return Ok(Verdict::Pass) };
    // SAFETY: the context's socket; the verifier knows it as a full one.
    let socket = unsafe { (*ctx.sock_addr).__bindgen_anon_1.sk };
    if socket.is_null() {
        return Err(Fail::StorageFailed);
    }
    // SAFETY: socket storage; until the SYN leaves only this program touches it.
    let connection = unsafe { storage(socket.cast(), true).as_mut() }.ok_or(Fail::StorageFailed)?;
    let now_ms = now_ms();
    // SAFETY: a helper without arguments.
    let process = unsafe { (bpf_get_current_pid_tgid() >> 32) as u32 };
    let hash = key.hash(crate::maps::seed());
    let edge = EdgeRef::find(&mut key, now_ms, process).ok_or(Fail::MapUpdate)?;
    connection.begin(key, hash, process);
    let Some(policy) = policy(connection, config) else { return Ok(Verdict::Pass) };
    Ok(judge_connect(&Bench { config, policy, edge, now_ms }, connection))
}

/// A connect after a failed one is a retry, unless its request turns out to say more.
#[inline(always)]
fn judge_connect(bench: &Bench, connection: &mut Connection) -> Verdict {
    bench.edge.touch(bench.now_ms);
    let fingerprint = connect_fingerprint(connection);
    let evidence = bench.evidence(fingerprint, Evidence::Connection);
    if matches!(evidence, Evidence::None) {
        return Verdict::Pass;
    }
    connection.connect_evidence = evidence as u8;
    if connection.limited == 0
        || !retry_common::judge::is_charged(evidence, Evidence::from_u8(bench.policy.act_on))
    {
        return Verdict::Pass;
    }
    let covered = bench.charge(connection, evidence);
    connection.connect_charged = if covered { charged::COVERED } else { charged::EXCESS };
    let verdict = bench.verdict(covered, true);
    if matches!(verdict, Verdict::Deny) {
        connection.connect_evidence = Evidence::None as u8;
        bench.give_back(fingerprint);
        // One by one: the verifier would not see the bounds of a list's elements.
        bench.edge.count(EdgeCounter::TcpAttempts);
        bench.edge.count(EdgeCounter::TcpConnection);
        bench.edge.count(EdgeCounter::TcpDenied);
        bench.edge.count(EdgeCounter::ConnectDenied);
    }
    verdict
}
