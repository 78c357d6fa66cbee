//! The system calls that std has no name for.

use std::io::{self, Error};
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

/// A result of −1 is the error in errno.
fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

/// The short name of an error that rows may see.
pub fn name(error: &Error) -> String {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => "EAGAIN".to_owned(),
        Some(libc::EINTR) => "EINTR".to_owned(),
        Some(libc::ECONNRESET) => "ECONNRESET".to_owned(),
        Some(libc::EPIPE) => "EPIPE".to_owned(),
        _ => error.to_string(),
    }
}

/// `data`, `end` or the error's name.
pub fn kind(result: &io::Result<usize>) -> String {
    match result {
        Ok(0) => "end".to_owned(),
        Ok(_) => "data".to_owned(),
        Err(error) => name(error),
    }
}

pub fn recv(socket: &impl AsRawFd, into: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the buffer is writable for its whole length.
    checked(unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) })
}

pub fn send(socket: &impl AsRawFd, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the buffer is readable for its whole length.
    checked(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

pub fn set(socket: &impl AsRawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is an int of the length named.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    checked(result as isize).map(|_| ())
}

/// Bytes that can be read now.
pub fn fionread(socket: &impl AsRawFd) -> usize {
    let mut count: i32 = 0;
    // SAFETY: FIONREAD writes one int.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    assert_eq!(result, 0, "FIONREAD: {}", Error::last_os_error());
    usize::try_from(count).expect("not negative")
}

/// Waits for one of these events for at most `limit_ms`; gives those that are.
pub fn poll(socket: &impl AsRawFd, events: i16, limit_ms: i32) -> i16 {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    // SAFETY: one pollfd, as the count says.
    unsafe { libc::poll(&raw mut poll, 1, limit_ms) };
    poll.revents
}

/// Waits until there is something to read.
pub fn until_readable(socket: &impl AsRawFd) {
    assert_ne!(poll(socket, libc::POLLIN, 10_000) & libc::POLLIN, 0, "nothing came");
}

/// Waits until the other side has closed, too, so that all it sent has arrived.
pub fn until_closed_by_peer(socket: &impl AsRawFd) {
    assert_ne!(poll(socket, libc::POLLRDHUP, 10_000) & libc::POLLRDHUP, 0, "the server does not close");
}

pub struct Epoll(OwnedFd);

impl Epoll {
    /// Watches one socket for these events.
    pub fn on(socket: &impl AsRawFd, events: i32) -> Self {
        // SAFETY: the call takes a number and gives a descriptor or −1.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(epoll >= 0, "epoll_create1: {}", Error::last_os_error());
        // SAFETY: the descriptor is new and nobody else's.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: 0 };
        let (fd, add) = (socket.as_raw_fd(), libc::EPOLL_CTL_ADD);
        // SAFETY: both descriptors are open and the event is initialised.
        let result = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), add, fd, &raw mut event) };
        assert_eq!(result, 0, "epoll_ctl: {}", Error::last_os_error());
        Self(epoll)
    }

    /// The events that come within `limit_ms`, 0 for none.
    pub fn wait(&self, limit_ms: i32) -> i32 {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event, as the count says.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, limit_ms) };
        if count == 1 { event.events.cast_signed() } else { 0 }
    }
}

/// A pipe: end to read from, end to write to.
pub fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends: [RawFd; 2] = [0; 2];
    // SAFETY: room for two descriptors.
    let result = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    assert_eq!(result, 0, "pipe2: {}", Error::last_os_error());
    // SAFETY: both descriptors are new and nobody else's.
    unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) }
}

pub fn splice(from: &impl AsRawFd, to: &impl AsRawFd, count: usize) -> io::Result<usize> {
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    // SAFETY: null offsets mean the descriptors' own.
    checked(unsafe { libc::splice(from, ptr::null_mut(), to, ptr::null_mut(), count, 0) })
}

pub fn sendfile(to: &impl AsRawFd, from: &impl AsRawFd, count: usize) -> io::Result<usize> {
    // SAFETY: a null offset means the file's own.
    checked(unsafe { libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), ptr::null_mut(), count) })
}

/// Receives data, and with it one control message of this level and type, as bytes.
pub fn recv_control(
    socket: &impl AsRawFd,
    into: &mut [u8],
    flags: i32,
    level: i32,
    kinds: &[i32],
) -> io::Result<(usize, Option<Vec<u8>>)> {
    let mut control = [0_u64; 32];
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: every pointer in the header is to memory of the length named that outlives the call.
    let count = checked(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) })?;
    // SAFETY: the header was filled in by the kernel.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let found = first.filter(|head| head.cmsg_level == level && kinds.contains(&head.cmsg_type));
    let bytes = found.map(|head| {
        // SAFETY: the kernel wrote `cmsg_len` bytes, head included, into `control`.
        let (data, head_len) = unsafe { (libc::CMSG_DATA(head), libc::CMSG_LEN(0) as usize) };
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(data, head.cmsg_len - head_len) }.to_vec()
    });
    Ok((count, bytes))
}

/// Sends one byte and a descriptor over a Unix socket.
pub fn send_descriptor(over: &impl AsRawFd, descriptor: &impl AsRawFd) {
    let mut control = [0_u64; 8];
    let mut byte = 1_u8;
    let mut piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    let payload = size_of::<RawFd>() as u32;
    // SAFETY: these compute lengths and a place within `control`, which is long and aligned enough.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(payload) as usize;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(payload) as usize;
        libc::CMSG_DATA(head).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
    }
    // SAFETY: every pointer in the header is to memory of the length named that outlives the call.
    let sent = unsafe { libc::sendmsg(over.as_raw_fd(), &raw const message, 0) };
    assert_eq!(sent, 1, "sendmsg: {}", Error::last_os_error());
}

/// Runs `act` in a forked child and gives the child's status.
pub fn in_child(act: impl FnOnce() -> i32) -> i32 {
    // SAFETY: this program has one thread when it forks.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", Error::last_os_error());
    if child == 0 {
        std::process::exit(act());
    }
    let mut status = 0;
    // SAFETY: the child is ours and not yet waited for.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "waitpid: {}", Error::last_os_error());
    libc::WEXITSTATUS(status)
}
