//! The call through io_uring.

use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, opcode, squeue, types};

use crate::Seen;
use crate::call::{BODY, Call, verdict_on};

/// Send, zero-copy send of the body, and receives until the end.
pub fn send_and_receive(call: &Call) -> Seen {
    let mut ring = match IoUring::new(8) {
        Ok(ring) => ring,
        Err(error) => return vec![format!("no io_uring: {error}")],
    };
    let stream = call.connect_in_two(BODY);
    let fd = types::Fd(stream.as_raw_fd());
    let head = call.head(BODY.len());
    let sent = submit(&mut ring, &opcode::Send::new(fd, head.as_ptr(), head.len() as u32).build(), 1);
    let zc = submit(&mut ring, &opcode::SendZc::new(fd, BODY.as_ptr(), BODY.len() as u32).build(), 2);
    let mut bytes = Vec::new();
    let mut piece = vec![0_u8; 65_536];
    loop {
        let receive = opcode::Recv::new(fd, piece.as_mut_ptr(), piece.len() as u32).build();
        match usize::try_from(submit(&mut ring, &receive, 1)[0]) {
            Ok(0) => break,
            Ok(count) => bytes.extend(&piece[..count]),
            Err(_) => return vec!["a receive failed".to_owned()],
        }
    }
    let whole = sent == [head.len() as i32];
    vec![format!("head sent: {whole}"), format!("zero-copy send: {zc:?}"), verdict_on(&bytes)]
}

/// Submits one entry and waits for its completions; gives their results.
fn submit(ring: &mut IoUring, entry: &squeue::Entry, completions: usize) -> Vec<i32> {
    // SAFETY: every buffer named by an entry lives until its completions were seen, which is before this returns.
    unsafe { ring.submission().push(entry) }.expect("the ring has room");
    let mut results = Vec::new();
    while results.len() < completions {
        ring.submit_and_wait(1).expect("the kernel takes entries");
        let seen: Vec<_> = ring.completion().collect();
        // A zero-copy send that failed at once has no second completion.
        let over = seen.iter().any(|entry| !io_uring::cqueue::more(entry.flags()));
        results.extend(seen.iter().map(|entry| entry.result()));
        if over {
            break;
        }
    }
    results
}
