//! Ways to wait for an answer, and what may happen meanwhile.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use retry_tests::wait;

use crate::Seen;
use crate::call::{Call, finish, read_to_end, verdict_on};
use crate::sys::{self, Epoll};

/// Wakes at the answer, not before.
pub fn poll(call: &Call) -> Seen {
    let stream = call.begin();
    let early = sys::poll(&stream, libc::POLLIN | libc::POLLRDHUP, 50);
    finish(&stream);
    let ready = sys::poll(&stream, libc::POLLIN, 10_000);
    let bytes = read_to_end(&stream);
    vec![format!("early: {early}"), format!("ready: {}", ready & libc::POLLIN != 0), verdict_on(&bytes)]
}

/// Level triggered: ready as long as something is there.
pub fn epoll_level(call: &Call) -> Seen {
    let stream = call.begin();
    let epoll = Epoll::on(&stream, libc::EPOLLIN);
    let early = epoll.wait(50);
    finish(&stream);
    let readable = |events: i32| events & libc::EPOLLIN != 0;
    let (first, second) = (epoll.wait(10_000), epoll.wait(10_000));
    let seen = format!("early: {early}, ready: {}, still: {}", readable(first), readable(second));
    vec![seen, verdict_on(&read_to_end(&stream))]
}

/// Edge triggered: every arrival wakes, and whoever reads until EAGAIN misses nothing.
pub fn epoll_edge(call: &Call) -> Seen {
    let stream = call.begin();
    stream.set_nonblocking(true).expect("always allowed");
    let epoll = Epoll::on(&stream, libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET);
    let early = epoll.wait(50);
    finish(&stream);
    let mut bytes = Vec::new();
    loop {
        if epoll.wait(10_000) == 0 {
            return vec!["an edge is missing".to_owned(), verdict_on(&bytes)];
        }
        loop {
            let mut piece = [0; 4096];
            match sys::recv(&stream, &mut piece, 0) {
                Ok(0) => return vec![format!("early: {early}"), verdict_on(&bytes)],
                Ok(count) => bytes.extend(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return vec![sys::name(&error)],
            }
        }
    }
}

/// A signal whose handler restarts: the blocked read goes on to the answer.
pub fn signal_restart(call: &Call) -> Seen {
    signalled(call, libc::SA_RESTART)
}

/// A signal whose handler does not: EINTR, and the next read gets the answer.
pub fn signal_interrupt(call: &Call) -> Seen {
    signalled(call, 0)
}

fn signalled(call: &Call, flags: i32) -> Seen {
    handle_sigusr1(flags);
    let stream = call.begin();
    let first = while_blocked(&stream, |reader| {
        // SAFETY: the reader is a thread of ours that is blocked in recv.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), reader, libc::SIGUSR1) };
        // The answer may only come once the signal has been seen.
        wait::until("the handler ran", || HANDLED.load(Ordering::SeqCst));
        finish(&stream);
    });
    let rest = read_to_end(&stream);
    vec![first.0, verdict_on(&[first.1, rest].concat())]
}

static HANDLED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: i32) {
    HANDLED.store(true, Ordering::SeqCst);
}

fn handle_sigusr1(flags: i32) {
    // SAFETY: all-zero bytes are a valid sigaction; the handler only stores an atomic.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut())
    };
    assert_eq!(result, 0, "a handler can be set");
}

/// SIGSTOP and SIGCONT: the blocked read goes on to the answer.
pub fn stop_and_continue(call: &Call) -> Seen {
    let stream = call.begin();
    let first = while_blocked(&stream, |_| {
        let pid = std::process::id();
        let line = format!(
            "kill -STOP {pid}; until grep -q '^State:.T' /proc/{pid}/status; do :; done; kill -CONT {pid}"
        );
        let status = Command::new("sh").args(["-c", &line]).status();
        assert!(status.expect("a shell").success(), "the shell stops and continues us");
        finish(&stream);
    });
    let rest = read_to_end(&stream);
    vec![first.0, verdict_on(&[first.1, rest].concat())]
}

/// A RST of the server: the blocked read says so. The server resets once the request is complete.
pub fn reset_while_blocked(call: &Call) -> Seen {
    let stream = call.begin();
    let first = while_blocked(&stream, |_| finish(&stream));
    vec![first.0, sys::kind(&sys::recv(&stream, &mut [0; 10], 0))]
}

/// A shutdown by another thread: the blocked read ends.
pub fn shutdown_by_another_thread(call: &Call) -> Seen {
    let stream = call.begin();
    let first = while_blocked(&stream, |_| stream.shutdown(Shutdown::Both).expect("the connection is open"));
    vec![first.0, sys::kind(&sys::recv(&stream, &mut [0; 10], 0))]
}

/// Blocks a thread in recv, then calls `act` with the thread's id; gives the kind and the bytes of the read.
fn while_blocked(stream: &TcpStream, act: impl FnOnce(i32)) -> (String, Vec<u8>) {
    let (sender, reader) = mpsc::channel();
    // A read with a limit is interrupted by every signal, without one it may be restarted.
    stream.set_read_timeout(None).expect("none is allowed");
    thread::scope(|scope| {
        let blocked = scope.spawn(move || {
            // SAFETY: gettid cannot fail and touches nothing.
            sender.send(unsafe { libc::gettid() }).expect("somebody listens");
            let mut bytes = vec![0; 65_536];
            let result = sys::recv(stream, &mut bytes, 0);
            bytes.truncate(*result.as_ref().unwrap_or(&0));
            (sys::kind(&result), bytes)
        });
        let reader = reader.recv().expect("the thread says who it is");
        wait::until("the reader is blocked", || is_in_recv(reader));
        act(reader);
        blocked.join().expect("the reader does not panic")
    })
}

fn is_in_recv(thread: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).unwrap_or_default();
    call.split(' ').next() == Some(&libc::SYS_recvfrom.to_string())
}
