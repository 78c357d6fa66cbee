//! Makes another segment of a packet, with sound lengths and checksums.
//!
//! The packet is cut before it grows: growing one with fragments would run into a kernel warning. The checksum
//! is mended by differences, which is right both for packets whose checksum the device completes and for those
//! that carry a complete one.
use crate::packet::Headers;
use crate::words::one_to_256;
use aya_ebpf::bindings::{__sk_buff, BPF_F_PSEUDO_HDR};
use aya_ebpf::helpers::generated::{
    bpf_csum_diff, bpf_l4_csum_replace, bpf_skb_change_tail, bpf_skb_load_bytes, bpf_skb_store_bytes,
};
use retry_common::abi::{ANSWER_LEN, Answer};
use retry_common::tcp::reflect::Reply;

const ETHERNET_LEN: u32 = 14;
const TCP_LEN: u32 = 20;
/// Timestamps with their padding (RFC 7323, appendix A).
const TIMESTAMPS_LEN: u32 = 12;
const TIMESTAMPS: u32 = 0x0101_080a_u32.to_be();
const TTL: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
const PORTS_SWAP: u32 = 16;

/// Where the new segment goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To where the packet was going.
    Onward,
    /// To where it came from: addresses, ports and timestamps change places.
    Back,
}

/// The packet could not be changed; it may be half changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Failed;

/// Rewrites the packet into `reply`, without options but timestamps, with the bytes of `answer` as data.
#[inline(always)]
pub fn rewrite(
    skb: *mut __sk_buff,
    headers: &Headers,
    reply: &Reply,
    direction: Direction,
    answer: Option<&Answer>,
) -> Result<(), Failed> {
    let mut old = [0_u32; 5];
    load(skb, headers.tcp_at, &mut old)?;
    let options = timestamps(skb, headers, &old, direction);
    let options_len = if options.is_some() { TIMESTAMPS_LEN } else { 0 };
    let body_len = answer.map_or(0, |answer| one_to_256(answer.len));
    // SAFETY: a context field.
    let old_len = unsafe { (*skb).len } - headers.tcp_at;
    let new_len = TCP_LEN + options_len + body_len;
    resize(skb, headers.tcp_at + TCP_LEN + options_len, body_len)?;
    if direction == Direction::Back {
        swap_ethernet(skb)?;
    }
    if headers.flow.version == 4 {
        rewrite_ipv4(skb, new_len, direction)?;
    } else {
        rewrite_ipv6(skb, new_len, direction)?;
    }
    rewrite_tcp(skb, headers.tcp_at, &old, reply, direction, options_len)?;
    if let Some(options) = options {
        store(skb, headers.tcp_at + TCP_LEN, &options)?;
    }
    if let Some(answer) = answer {
        let at = headers.tcp_at + TCP_LEN + options_len;
        // SAFETY: `bytes` has ANSWER_LEN = 256 bytes.
        if unsafe { bpf_skb_store_bytes(skb, at, answer.bytes.as_ptr().cast(), body_len, 0) } != 0 {
            return Err(Failed);
        }
    }
    mend_length(skb, headers.tcp_at, old_len, new_len)
}

const _: () = assert!(ANSWER_LEN == 256);

#[inline(always)]
fn load<T>(skb: *mut __sk_buff, at: u32, to: &mut T) -> Result<(), Failed> {
    // SAFETY: writes exactly `T`, which is plain words here.
    let failed =
        unsafe { bpf_skb_load_bytes(skb.cast(), at, core::ptr::from_mut(to).cast(), size_of::<T>() as u32) };
    if failed == 0 { Ok(()) } else { Err(Failed) }
}

#[inline(always)]
fn store<T>(skb: *mut __sk_buff, at: u32, from: &T) -> Result<(), Failed> {
    // SAFETY: reads exactly `T`, which is plain words here.
    let failed =
        unsafe { bpf_skb_store_bytes(skb, at, core::ptr::from_ref(from).cast(), size_of::<T>() as u32, 0) };
    if failed == 0 { Ok(()) } else { Err(Failed) }
}

/// The timestamps of the segment, if they are its first option, as the new one is to carry them.
#[inline(always)]
fn timestamps(
    skb: *mut __sk_buff,
    headers: &Headers,
    tcp: &[u32; 5],
    direction: Direction,
) -> Option<[u32; 3]> {
    let words = u32::from((u32::from_be(tcp[3]) >> 28) as u8);
    if words < (TCP_LEN + TIMESTAMPS_LEN) / 4 {
        return None;
    }
    let mut options = [0_u32; 3];
    load(skb, headers.tcp_at + TCP_LEN, &mut options).ok()?;
    if options[0] != TIMESTAMPS {
        return None;
    }
    Some(if direction == Direction::Back { [options[0], options[2], options[1]] } else { options })
}

#[inline(always)]
fn resize(skb: *mut __sk_buff, headers_len: u32, body_len: u32) -> Result<(), Failed> {
    // SAFETY: a context field and a helper on the context.
    if unsafe { (*skb).len != headers_len && bpf_skb_change_tail(skb, headers_len, 0) != 0 } {
        return Err(Failed);
    }
    // SAFETY: as above.
    if body_len != 0 && unsafe { bpf_skb_change_tail(skb, headers_len + body_len, 0) } != 0 {
        return Err(Failed);
    }
    Ok(())
}

#[inline(always)]
fn swap_ethernet(skb: *mut __sk_buff) -> Result<(), Failed> {
    let mut addresses = [0_u16; 6];
    load(skb, 0, &mut addresses)?;
    let [a, b, c, d, e, f] = addresses;
    store(skb, 0, &[d, e, f, a, b, c])
}

#[inline(always)]
fn rewrite_ipv4(skb: *mut __sk_buff, tcp_len: u32, direction: Direction) -> Result<(), Failed> {
    let mut ip = [0_u32; 5];
    load(skb, ETHERNET_LEN, &mut ip)?;
    // Version, length, no congestion marks; total length; identification 0; no fragments.
    let tos = (ip[0].to_be() >> 16) as u8 & 0xfc;
    ip[0] = (0x4500_0000 | u32::from(tos) << 16 | (20 + tcp_len)).to_be();
    ip[1] = u32::from(DONT_FRAGMENT).to_be();
    ip[2] = (u32::from(TTL) << 24 | 6 << 16).to_be();
    if direction == Direction::Back {
        (ip[3], ip[4]) = (ip[4], ip[3]);
    }
    // SAFETY: 20 bytes.
    let sum = unsafe { bpf_csum_diff(core::ptr::null_mut(), 0, ip.as_mut_ptr(), 20, 0) } as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    // The checksum lies in the upper half of the third word, in memory order like the sum.
    ip[2] |= u32::from(!(sum as u16)) << 16;
    store(skb, ETHERNET_LEN, &ip)
}

#[inline(always)]
fn rewrite_ipv6(skb: *mut __sk_buff, tcp_len: u32, direction: Direction) -> Result<(), Failed> {
    let mut ip = [0_u32; 10];
    load(skb, ETHERNET_LEN, &mut ip)?;
    // No congestion marks; payload length, TCP, hop limit.
    ip[0] &= !(0x0030_0000_u32.to_be());
    ip[1] = (tcp_len << 16 | 6 << 8 | u32::from(TTL)).to_be();
    if direction == Direction::Back {
        let [a, b, c, d, e, f, g, h, i, j] = ip;
        ip = [a, b, g, h, i, j, c, d, e, f];
    }
    store(skb, ETHERNET_LEN, &ip)
}

#[inline(always)]
fn rewrite_tcp(
    skb: *mut __sk_buff,
    at: u32,
    old: &[u32; 5],
    reply: &Reply,
    direction: Direction,
    options_len: u32,
) -> Result<(), Failed> {
    let words = (TCP_LEN + options_len) / 4;
    let mut new = [
        if direction == Direction::Back { old[0].rotate_left(PORTS_SWAP) } else { old[0] },
        reply.seq.to_be(),
        reply.ack.to_be(),
        (words << 28 | u32::from(reply.flags) << 16 | 0xffff).to_be(),
        // The checksum stays for the differences below; no urgent data.
        old[4] & 0xffff_u32.to_le(),
    ];
    let mut before = *old;
    store(skb, at, &new)?;
    // SAFETY: 20 bytes each.
    let difference = unsafe { bpf_csum_diff(before.as_mut_ptr(), 20, new.as_mut_ptr(), 20, 0) };
    // SAFETY: a helper on the context.
    if unsafe { bpf_l4_csum_replace(skb, at + 16, 0, difference as u64, 0) } != 0 {
        return Err(Failed);
    }
    Ok(())
}

/// The length is part of the pseudo header.
#[inline(always)]
fn mend_length(skb: *mut __sk_buff, at: u32, old: u32, new: u32) -> Result<(), Failed> {
    let (old, new) = (u64::from((old as u16).to_be()), u64::from((new as u16).to_be()));
    // SAFETY: a helper on the context; the width is 2 bytes.
    if unsafe { bpf_l4_csum_replace(skb, at + 16, old, new, u64::from(BPF_F_PSEUDO_HDR) | 2) } != 0 {
        return Err(Failed);
    }
    Ok(())
}
