//! `tc`: packets of denied requests are turned round at the device (tcx from 6.6, clsact before).
//!
//! `reflect_denied` sees what leaves by a device, `shield_denied` what comes in. Both give every packet that
//! is not theirs to the next program ([`NEXT`]). Only acknowledgements, resets and what could not be rewritten are
//! swallowed ([`DROP`]): TCP waits for no word on the first two, and sends the last again.
use crate::fail::count;
use crate::maps::{ANSWERS, DENIED, LAST_DENIAL};
use crate::packet::{self, Headers, Read};
use crate::socket::{now_ms, of_packet};
use crate::stages::rewrite::{Direction, rewrite};
use aya_ebpf::bindings::{__sk_buff, BPF_F_INGRESS};
use aya_ebpf::helpers::generated::{bpf_clone_redirect, bpf_redirect, bpf_skb_pull_data};
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use retry_common::abi::{Answer, Connection, EdgeKey, Fail, Flow, FlowKey, Phase};
use retry_common::tcp::flag;
use retry_common::tcp::reflect::{Action, Reply, from_client, from_server};

/// TC_ACT_UNSPEC, TCX_NEXT: the next program decides.
const NEXT: i32 = -1;
const TC_ACT_OK: i32 = 0;
/// TC_ACT_SHOT, TCX_DROP. Not TC_ACT_STOLEN: tcx knows no such code and lets the packet go on (`tcx_action_code` in
/// `include/net/tcx.h`, 6.6). TCP takes it for congestion, which on a denied connection means nothing.
const DROP: i32 = 2;
/// The loopback device has this index in every network namespace.
const LOOPBACK: u32 = 1;
const ETHERNET_LEN: u32 = 14;
/// As `__sk_buff.protocol` has them: in network byte order.
const ETH_P_IP: u32 = 0x0800_u16.to_be() as u32;
const ETH_P_IPV6: u32 = 0x86dd_u16.to_be() as u32;
/// Ethernet, IPv6 and TCP with timestamps: what must be readable at once.
const HEADERS_LEN: u32 = ETHERNET_LEN + 40 + 32;
/// How long after the last denial packets without a followed socket are looked up, ms: longer than TIME_WAIT.
const AFTERMATH_MS: u64 = 120_000;

/// A packet leaves by a device.
#[classifier]
pub fn reflect_denied(ctx: TcContext) -> i32 {
    let skb = ctx.skb.skb;
    // SAFETY: a context field.
    match of_packet(unsafe { (*skb).__bindgen_anon_2.sk }) {
        Some(connection) if connection.established == 0 => {
            cover(skb, connection);
            return NEXT;
        }
        Some(connection) if !connection.is(Phase::Denied) => return NEXT,
        Some(_) => {}
        // A forwarded packet, or a reset or a late acknowledgement that the kernel sends for a closed socket.
        None if !is_aftermath() => return NEXT,
        None => {}
    }
    let Some(headers) = read_headers(skb) else { return NEXT };
    let Some(flow) = DENIED.get_ptr_mut(headers.flow) else { return NEXT };
    // SAFETY: a map value. Packets of one flow leave one after the other; should two CPUs meet here, each
    // field is one store wide and either order is a correct answer.
    turn_round(skb, &headers, unsafe { &mut *flow })
}

/// A packet comes in by a device.
#[classifier]
pub fn shield_denied(ctx: TcContext) -> i32 {
    let skb = ctx.skb.skb;
    if !is_aftermath() {
        return NEXT;
    }
    let Some(headers) = read_headers(skb) else { return NEXT };
    let Some(flow) = DENIED.get_ptr(headers.flow.reversed()) else { return NEXT };
    // SAFETY: a map value, only read.
    match from_server(unsafe { &*flow }, &headers.segment) {
        Action::Pass => NEXT,
        Action::Swallow => DROP,
        Action::Reply(reply) => {
            count(Fail::Shielded);
            if rewrite(skb, &headers, &reply, Direction::Back, None).is_err() {
                count(Fail::ReflectFailed);
                return DROP;
            }
            // SAFETY: takes numbers.
            unsafe { bpf_redirect((*skb).ifindex, 0) as i32 }
        }
    }
}

/// A SYN on its way through this program proves that the device is covered. On loopback not for a translated
/// destination: an answer made in place would not find its way through the translation.
#[inline(always)]
fn cover(skb: *mut __sk_buff, connection: &mut Connection) {
    let Some(headers) = read_headers(skb) else { return };
    if !headers.segment.has(flag::SYN) {
        return;
    }
    // SAFETY: a context field.
    let loopback = unsafe { (*skb).ifindex } == LOOPBACK;
    connection.covered = (!loopback || is_untranslated(&headers.flow, &connection.edge)) as u8;
}

#[inline(always)]
fn is_untranslated(flow: &FlowKey, edge: &EdgeKey) -> bool {
    let on_wire = if flow.version == 4 { flow.server[0] } else { flow.server[3] };
    // A connect to the unspecified address means loopback.
    let last = edge.address[3];
    u16::from_be(flow.server_port) == edge.port && (on_wire == last || last == 0)
}

#[inline(always)]
fn is_aftermath() -> bool {
    match LAST_DENIAL.get(0) {
        Some(last) => *last != 0 && now_ms().saturating_sub(*last) < AFTERMATH_MS,
        None => false,
    }
}

/// The headers of a TCP packet on Ethernet, made readable if they are not.
#[inline(always)]
fn read_headers(skb: *mut __sk_buff) -> Option<Headers> {
    // SAFETY: context fields.
    let (protocol, tagged) = unsafe { ((*skb).protocol, (*skb).vlan_present) };
    if (protocol != ETH_P_IP && protocol != ETH_P_IPV6) || tagged != 0 {
        return None;
    }
    match packet::read(skb, ETHERNET_LEN) {
        Read::Tcp(headers) => return Some(headers),
        Read::Short => {}
        Read::Other | Read::Unusual => return None,
    }
    // SAFETY: a context field.
    let len = unsafe { (*skb).len };
    let wanted = if len < HEADERS_LEN { len } else { HEADERS_LEN };
    // SAFETY: a helper on the context.
    if unsafe { bpf_skb_pull_data(skb, wanted) } != 0 {
        return None;
    }
    match packet::read(skb, ETHERNET_LEN) {
        Read::Tcp(headers) => Some(headers),
        _ => None,
    }
}

#[inline(always)]
fn turn_round(skb: *mut __sk_buff, headers: &Headers, flow: &mut Flow) -> i32 {
    let Some(answer) = ANSWERS.get(flow.policy) else { return NEXT };
    flow.answer_len = answer.len;
    let reflection = from_client(flow, &headers.segment);
    let reply = match reflection.action {
        Action::Pass => return NEXT,
        Action::Swallow => {
            count(Fail::Swallowed);
            return DROP;
        }
        Action::Reply(reply) => reply,
    };
    // SAFETY: a context field.
    let device = unsafe { (*skb).ifindex };
    if let Some(reset) = reflection.reset {
        // The clone goes on to the server; the packet itself is rewritten once more below.
        let cloned = rewrite(skb, headers, &reset, Direction::Onward, None)
            // SAFETY: a helper on the context.
            .map(|()| unsafe { bpf_clone_redirect(skb, device, 0) });
        if cloned != Ok(0) {
            count(Fail::ResetFailed);
        }
    }
    answer_client(skb, headers, &reply, answer, device)
}

#[inline(always)]
fn answer_client(skb: *mut __sk_buff, headers: &Headers, reply: &Reply, answer: &Answer, device: u32) -> i32 {
    let body = if reply.answer { Some(answer) } else { None };
    if rewrite(skb, headers, reply, Direction::Back, body).is_err() {
        // Half rewritten it must not go on; the client will send it again.
        count(Fail::ReflectFailed);
        return DROP;
    }
    if reply.answer {
        count(Fail::Answered);
    }
    if device == LOOPBACK {
        // It comes back by itself, and keeps its route, which a redirect would lose.
        return TC_ACT_OK;
    }
    // SAFETY: takes numbers.
    unsafe { bpf_redirect(device, u64::from(BPF_F_INGRESS)) as i32 }
}
