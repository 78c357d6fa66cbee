//! IP and TCP headers by direct packet access.
use crate::words::{load16, load32};
use aya_ebpf::bindings::__sk_buff;
use retry_common::abi::FlowKey;
use retry_common::tcp::Segment;

const TCP: u8 = 6;
const IPV4_LEN: u32 = 20;
const IPV6_LEN: u32 = 40;
const TCP_LEN: u32 = 20;

/// The headers of a packet.
#[derive(Clone, Copy)]
pub struct Headers {
    /// Source as client, destination as server.
    pub flow: FlowKey,
    /// The TCP part.
    pub segment: Segment,
    /// Offset of the TCP header.
    pub tcp_at: u32,
    /// Offset of the data.
    pub data_at: u32,
}

/// What stands at the beginning of a packet.
pub enum Read {
    /// A TCP segment.
    Tcp(Headers),
    /// Another protocol.
    Other,
    /// IP options, a fragment, an extension header.
    Unusual,
    /// Too few bytes in the linear part.
    Short,
}

/// Reads the headers at `offset`.
#[inline(always)]
pub fn read(skb: *mut __sk_buff, offset: u32) -> Read {
    // SAFETY: context fields.
    let (data, data_end, length) = unsafe { ((*skb).data as usize, (*skb).data_end as usize, (*skb).len) };
    let ip = (data + offset as usize) as *const u8;
    if ip as usize + IPV4_LEN as usize > data_end {
        return Read::Short;
    }
    // SAFETY: inside the packet by the check above.
    let first = unsafe { *ip };
    if first >> 4 == 4 {
        ipv4(ip, first, data_end, offset, length)
    } else {
        ipv6(ip, first, data_end, offset, length)
    }
}

#[inline(always)]
fn ipv4(ip: *const u8, first: u8, data_end: usize, offset: u32, length: u32) -> Read {
    // SAFETY: 20 bytes were checked by the caller.
    let (total, fragment) = unsafe { (u16::from_be(load16::<2>(ip)), u16::from_be(load16::<6>(ip))) };
    // SAFETY: as above.
    if unsafe { *ip.add(9) } != TCP {
        return Read::Other;
    }
    if first & 15 != 5 || fragment & 0x3fff != 0 {
        return Read::Unusual;
    }
    // SAFETY: as above.
    let (source, destination) = unsafe { (load32::<12>(ip), load32::<16>(ip)) };
    let mut flow = FlowKey { version: 4, ..FlowKey::default() };
    flow.client[0] = source;
    flow.server[0] = destination;
    // 0 stands for a length beyond 64 KiB (BIG TCP).
    let end = if total == 0 { length } else { offset + u32::from(total) };
    tcp((ip as usize + IPV4_LEN as usize) as *const u8, data_end, offset + IPV4_LEN, end, flow)
}

#[inline(always)]
fn ipv6(ip: *const u8, first: u8, data_end: usize, offset: u32, length: u32) -> Read {
    if first >> 4 != 6 {
        return Read::Other;
    }
    if ip as usize + IPV6_LEN as usize > data_end {
        return Read::Short;
    }
    // SAFETY: 40 bytes were checked above.
    let (payload, next) = unsafe { (u16::from_be(load16::<4>(ip)), *ip.add(6)) };
    match next {
        TCP => {}
        // Hop-by-hop, routing, fragment, destination options: TCP may follow.
        0 | 43 | 44 | 60 => return Read::Unusual,
        _ => return Read::Other,
    }
    // SAFETY: as above.
    let flow = unsafe {
        FlowKey {
            client: [load32::<8>(ip), load32::<12>(ip), load32::<16>(ip), load32::<20>(ip)],
            server: [load32::<24>(ip), load32::<28>(ip), load32::<32>(ip), load32::<36>(ip)],
            version: 6,
            ..FlowKey::default()
        }
    };
    let end = if payload == 0 { length } else { offset + IPV6_LEN + u32::from(payload) };
    tcp((ip as usize + IPV6_LEN as usize) as *const u8, data_end, offset + IPV6_LEN, end, flow)
}

#[inline(always)]
fn tcp(header: *const u8, data_end: usize, tcp_at: u32, end: u32, mut flow: FlowKey) -> Read {
    if header as usize + TCP_LEN as usize > data_end {
        return Read::Short;
    }
    // SAFETY: 20 bytes were checked above.
    let (seq, ack) = unsafe { (u32::from_be(load32::<4>(header)), u32::from_be(load32::<8>(header))) };
    // SAFETY: as above.
    unsafe {
        flow.client_port = load16::<0>(header);
        flow.server_port = load16::<2>(header);
    }
    // SAFETY: as above.
    let (words, flags) = unsafe { (u32::from(*header.add(12) >> 4), *header.add(13)) };
    let data_at = tcp_at + words * 4;
    if data_at > end {
        return Read::Unusual;
    }
    let segment = Segment { seq, ack, len: end - data_at, flags };
    Read::Tcp(Headers { flow, segment, tcp_at, data_at })
}
