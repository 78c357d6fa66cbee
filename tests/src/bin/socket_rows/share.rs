//! One connection in two processes.

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::Seen;
use crate::call::{BODY, Call, read_to_end, verdict_on};
use crate::sys;

/// What a child says by its status.
fn status(verdict: &str) -> i32 {
    i32::from(verdict != "one whole answer")
}

/// The parent sends, the forked child reads.
pub fn fork(call: &Call) -> Seen {
    let stream = call.send(BODY);
    let child = sys::in_child(|| status(&verdict_on(&read_to_end(&stream))));
    vec![format!("the child's status: {child}"), sys::kind(&sys::recv(&stream, &mut [0; 10], 0))]
}

/// A process that never connected gets the connection by SCM_RIGHTS, sends and reads.
pub fn scm_rights(call: &Call) -> Seen {
    let stream = call.connect(BODY);
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    sys::send_descriptor(&ours, &stream);
    drop(stream);
    let child = sys::in_child(|| {
        let kinds = [libc::SCM_RIGHTS];
        let received = sys::recv_control(&theirs, &mut [0], 0, libc::SOL_SOCKET, &kinds);
        let Ok((_, Some(bytes))) = received else { return 2 };
        let number = i32::from_ne_bytes(bytes[..4].try_into().expect("a descriptor"));
        // SAFETY: the kernel has just made this descriptor for us.
        let stream = std::net::TcpStream::from(unsafe { OwnedFd::from_raw_fd(number) });
        if sys::send(&stream, &call.request(BODY), 0).is_err() {
            return 3;
        }
        status(&verdict_on(&read_to_end(&stream)))
    });
    vec![format!("the child's status: {child}")]
}
