//! From a context to the storage of its socket, and the clock.
use crate::maps::CONNECTIONS;
use aya_ebpf::bindings::{BPF_SK_STORAGE_GET_F_CREATE, bpf_sock};
use aya_ebpf::helpers::generated::{bpf_ktime_get_coarse_ns, bpf_sk_fullsock, bpf_sk_storage_get};
use core::ffi::c_void;
use core::ptr::{addr_of, null_mut};
use retry_common::abi::Connection;

/// ms of the monotonic clock; a tick (1–4 ms) coarse, and cheap.
#[inline(always)]
pub fn now_ms() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_ktime_get_coarse_ns() / 1_000_000 }
}

/// The storage of a socket that a hook hands out as a full one; null if there is none.
#[inline(always)]
pub fn storage(socket: *mut c_void, create: bool) -> *mut Connection {
    let flags = if create { u64::from(BPF_SK_STORAGE_GET_F_CREATE) } else { 0 };
    // SAFETY: the static's address stands for the map, which the loader puts in its place.
    unsafe { bpf_sk_storage_get(addr_of!(CONNECTIONS) as *mut c_void, socket, null_mut(), flags).cast() }
}

/// The storage of a packet's socket, if it is one that is followed.
#[inline(always)]
pub fn of_packet(socket: *mut bpf_sock) -> Option<&'static mut Connection> {
    if socket.is_null() {
        return None;
    }
    // SAFETY: not null; the verifier knows it as a socket.
    let full = unsafe { bpf_sk_fullsock(socket) };
    if full.is_null() {
        return None;
    }
    // SAFETY: socket storage lives as long as the program runs. Other CPUs may write it too: every field is
    // one store wide and has one writer (see `Connection`).
    unsafe { storage(full.cast(), false).as_mut() }
}
