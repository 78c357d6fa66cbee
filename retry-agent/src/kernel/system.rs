//! System calls that no library of ours wraps: network namespaces, their devices, signals, clock and random
//! numbers.
#![expect(unsafe_code, reason = "system calls")]
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};

/// Device types with an Ethernet header (`include/uapi/linux/if_arp.h`).
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;

/// ms of the monotonic clock.
pub fn monotonic_ms() -> u64 {
    // SAFETY: plain numbers.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: writes the structure above; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1000 + time.tv_nsec.cast_unsigned() / 1_000_000
}

/// Sends a signal to a process.
pub fn send_signal(process: u32, number: i32) -> io::Result<()> {
    // SAFETY: a system call without memory.
    check(unsafe { libc::kill(process.cast_signed(), number) }).map(drop)
}

/// Eight random bytes.
pub fn random() -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: writes at most eight bytes. Should it fail, fingerprints are merely predictable.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    u64::from_ne_bytes(bytes)
}

/// Moves this thread into a network namespace.
pub fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: a system call on an open descriptor.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// A device of the thread's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub index: u32,
    pub name: String,
}

/// The devices of the thread's network namespace that carry Ethernet frames.
pub fn devices() -> io::Result<Vec<Device>> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: returns a list that ends with index 0, or null.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut devices = Vec::new();
    for at in 0.. {
        // SAFETY: inside the list; its end is looked for first.
        let entry = unsafe { *list.add(at) };
        if entry.if_index == 0 {
            break;
        }
        // SAFETY: a string of the list.
        let name = unsafe { CStr::from_ptr(entry.if_name) }.to_string_lossy().into_owned();
        if has_ethernet_header(&socket, &name) {
            devices.push(Device { index: entry.if_index, name });
        }
    }
    // SAFETY: the list from above, once.
    unsafe { libc::if_freenameindex(list) };
    Ok(devices)
}

/// A device that vanished in between has none.
fn has_ethernet_header(socket: &OwnedFd, name: &str) -> bool {
    // SAFETY: plain numbers.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from.cast_signed();
    }
    // SAFETY: reads and writes the request above.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) };
    // SAFETY: the kernel filled in this member of the union if it succeeded.
    let kind = unsafe { request.ifr_ifru.ifru_hwaddr.sa_family };
    result == 0 && matches!(kind, ARPHRD_ETHER | ARPHRD_LOOPBACK)
}

/// A socket that becomes readable when a device of the thread's network namespace comes, changes or goes
/// (rtnetlink(7)).
pub fn watch_devices() -> io::Result<OwnedFd> {
    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, libc::NETLINK_ROUTE)?;
    // SAFETY: plain numbers.
    let mut address: libc::sockaddr_nl = unsafe { zeroed() };
    address.nl_family = libc::AF_NETLINK as u16;
    address.nl_groups = libc::RTMGRP_LINK as u32;
    let len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: reads the address above.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(socket)
}

/// Reads away what made a socket readable. What it said does not matter: the devices are listed anew.
pub fn drain(socket: &OwnedFd) {
    let mut bytes = [0_u8; 8192];
    // SAFETY: writes into the buffer above. Lost messages (ENOBUFS) only mean that there were many.
    while unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) } > 0 {}
}

/// Waits until one of the sockets is readable, or the time is over; tells which are.
pub fn wait(sockets: &[&OwnedFd], timeout_ms: i32) -> Vec<bool> {
    let entry = |fd: &&OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = sockets.iter().map(entry).collect();
    // SAFETY: the array above and its length. An interrupted wait is one that ended early.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, timeout_ms) };
    entries.iter().map(|entry| entry.revents != 0).collect()
}

/// A counter that becomes readable when something is added (eventfd(2)).
pub fn signal() -> io::Result<OwnedFd> {
    // SAFETY: a system call without memory.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Wakes who waits on a [`signal`].
pub fn raise(signal: &OwnedFd) {
    // SAFETY: a system call on an open descriptor. It fails only when the counter is full: woken already.
    unsafe { libc::eventfd_write(signal.as_raw_fd(), 1) };
}

/// Reads a [`signal`] away.
pub fn drain_signal(signal: &OwnedFd) {
    let mut count = 0;
    // SAFETY: writes the number above.
    unsafe { libc::eventfd_read(signal.as_raw_fd(), &raw mut count) };
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: a system call without memory.
    let fd = check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_loopback_device() {
        let devices = devices().unwrap();
        assert!(devices.contains(&Device { index: 1, name: "lo".to_owned() }), "{devices:?}");
    }

    #[test]
    fn a_raised_signal_wakes() {
        let signal = signal().unwrap();
        assert_eq!(wait(&[&signal], 0), [false]);
        raise(&signal);
        assert_eq!(wait(&[&signal], 1000), [true]);
        drain_signal(&signal);
        assert_eq!(wait(&[&signal], 0), [false]);
    }
}
