//! Sending from and receiving into the program's own pages.

use std::io::{Error, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::ptr;

use retry_tests::wait;

use crate::Seen;
use crate::call::{BODY, Call, read_to_end, verdict_on};
use crate::sys;

const PIECE: usize = 100_000;
const PIECES: usize = 20;

/// `SO_EE_ORIGIN_ZEROCOPY` of `linux/errqueue.h`.
const ORIGIN_ZEROCOPY: u8 = 5;

/// Every send is completed exactly once, so that the program may reuse its pages.
pub fn send(call: &Call) -> Seen {
    let body = vec![b'z'; PIECE * PIECES];
    let mut stream = call.connect_in_two(&body);
    sys::set(&stream, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).expect("TCP can do it");
    stream.write_all(&call.head(body.len())).expect("the server reads");
    let (mut sent, mut sends) = (0, 0);
    while sent < body.len() {
        match sys::send(&stream, &body[sent..body.len().min(sent + PIECE)], libc::MSG_ZEROCOPY) {
            Ok(count) => sent += count,
            Err(error) => return vec![format!("{} after {sent} bytes", sys::name(&error))],
        }
        sends += 1;
    }
    let answer = verdict_on(&read_to_end(&stream));
    let mut completed = 0;
    let done = wait::within(wait::PATIENCE, || {
        completed += completions(&stream);
        (completed >= sends).then_some(())
    });
    // One too many would come now.
    completed += completions(&stream);
    vec![answer, format!("in time: {}, exactly: {}", done.is_some(), completed == sends)]
}

/// Completions in the error queue: each names a range of sends.
fn completions(stream: &TcpStream) -> u32 {
    let mut count = 0;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    let kinds = [libc::IP_RECVERR];
    while let Ok((_, Some(bytes))) = sys::recv_control(stream, &mut [], flags, libc::SOL_IP, &kinds) {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        // struct sock_extended_err: errno, origin, type, code, pad, info, data.
        if bytes[4] == ORIGIN_ZEROCOPY {
            count += word(12) - word(8) + 1;
        }
    }
    count
}

/// `struct tcp_zerocopy_receive` of `linux/tcp.h`, up to the last field that is needed.
#[repr(C)]
#[derive(Default)]
struct Receive {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
}

const WINDOW: usize = 1 << 20;

/// Whole pages are mapped, the rest is read; together they are the answer.
pub fn receive(call: &Call) -> Seen {
    let stream = call.send(BODY);
    let window = Window::of(&stream);
    let mut bytes = Vec::new();
    loop {
        sys::until_readable(&stream);
        let mut receive = Receive { address: window.0 as u64, length: WINDOW as u32, ..Receive::default() };
        let mut length = size_of::<Receive>() as libc::socklen_t;
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_ZEROCOPY_RECEIVE);
        // SAFETY: the kernel reads and writes the structure and maps pages into the window only.
        let result = unsafe {
            libc::getsockopt(stream.as_raw_fd(), level, option, (&raw mut receive).cast(), &raw mut length)
        };
        if result != 0 {
            let error = Error::last_os_error();
            // Its way to say that the server has closed and all is read.
            let end = error.raw_os_error() == Some(libc::EIO);
            return vec![if end { verdict_on(&bytes) } else { error.to_string() }];
        }
        // SAFETY: the kernel has mapped that much.
        bytes.extend(unsafe { std::slice::from_raw_parts(window.0.cast::<u8>(), receive.length as usize) });
        let mut rest = vec![0; receive.recv_skip_hint as usize];
        if rest.is_empty() && receive.length == 0 {
            rest.resize(4096, 0);
        }
        let mut filled = 0;
        while filled < rest.len() {
            match sys::recv(&stream, &mut rest[filled..], 0) {
                Ok(0) => return vec![verdict_on(&[&bytes, &rest[..filled]].concat())],
                Ok(count) => filled += count,
                Err(error) => return vec![sys::name(&error)],
            }
            if receive.recv_skip_hint == 0 {
                break;
            }
        }
        bytes.extend(&rest[..filled]);
    }
}

/// Address space in which a socket's pages appear.
struct Window(*mut libc::c_void);

impl Window {
    fn of(stream: &TcpStream) -> Self {
        let (fd, prot, flags) = (stream.as_raw_fd(), libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a fresh mapping at an address the kernel chooses.
        let at = unsafe { libc::mmap(ptr::null_mut(), WINDOW, prot, flags, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED, "mmap: {}", Error::last_os_error());
        Self(at)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped in `of` with this length, and nobody has a reference into it.
        unsafe { libc::munmap(self.0, WINDOW) };
    }
}
