//! Ways to send a request.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use crate::Seen;
use crate::call::{Call, read_to_end, verdict_on};
use crate::sys;

/// Many packets, many GSO packets, more than any buffer.
const LONG: usize = 3_000_000;

fn body() -> Vec<u8> {
    (0..LONG).map(|at| (at % 251) as u8).collect()
}

/// The body as a file that is gone with its descriptor.
fn file() -> File {
    let path = std::env::temp_dir().join(format!("socket-rows-{}", std::process::id()));
    fs::write(&path, body()).expect("scratch files can be written");
    let file = File::open(&path).expect("it was just written");
    fs::remove_file(&path).expect("it was just written");
    file
}

/// The body through a pipe.
pub fn splice_in(call: &Call) -> Seen {
    let mut stream = call.connect_in_two(&body());
    stream.write_all(&call.head(LONG)).expect("the server reads");
    let (file, (from, to)) = (file(), sys::pipe());
    let mut sent = 0;
    while sent < LONG {
        let mut in_pipe = sys::splice(&file, &to, 65_536).expect("the file is long enough");
        while in_pipe > 0 {
            let count = sys::splice(&from.as_fd(), &stream, in_pipe).expect("the server reads");
            in_pipe -= count;
            sent += count;
        }
    }
    vec![format!("sent {sent}"), verdict_on(&read_to_end(&stream))]
}

/// The body from a file.
pub fn sendfile(call: &Call) -> Seen {
    let mut stream = call.connect_in_two(&body());
    stream.write_all(&call.head(LONG)).expect("the server reads");
    let file = file();
    let mut sent = 0;
    while sent < LONG {
        sent += sys::sendfile(&stream, &file, LONG - sent).expect("the server reads");
    }
    vec![format!("sent {sent}"), verdict_on(&read_to_end(&stream))]
}

/// Head and body in two sends that leave in one packet.
pub fn msg_more(call: &Call) -> Seen {
    let stream = call.connect(b"body");
    let started = Instant::now();
    sys::send(&stream, &call.head(4), libc::MSG_MORE).expect("the server reads");
    sys::send(&stream, b"body", 0).expect("the server reads");
    let bytes = read_to_end(&stream);
    // A corked head leaves after 200 ms by itself; nobody may wait for that.
    vec![verdict_on(&bytes), format!("at once: {}", started.elapsed() < Duration::from_millis(190))]
}

/// A long body from a client that never blocks.
pub fn nonblocking_upload(call: &Call) -> Seen {
    let stream = call.connect(&body());
    stream.set_nonblocking(true).expect("always allowed");
    let request = call.request(&body());
    let mut sent = 0;
    while sent < request.len() {
        match sys::send(&stream, &request[sent..], 0) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let ready = sys::poll(&stream, libc::POLLOUT, 10_000);
                assert_ne!(ready & libc::POLLOUT, 0, "no room for more after {sent} bytes");
            }
            Err(error) => return vec![format!("{} after {sent} bytes", sys::name(&error))],
        }
    }
    stream.set_nonblocking(false).expect("always allowed");
    vec![format!("all sent: {}", sent == request.len()), verdict_on(&read_to_end(&stream))]
}

/// Small requests without TCP_NODELAY, each in one send. None waits for a delayed acknowledgement (40 ms).
pub fn small_sends(call: &Call) -> Seen {
    const ROUNDS: usize = 300;
    let stream = call.connect(b"");
    let request = [&call.head(0)[..]].concat();
    let mut stalls = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        sys::send(&stream, &request, 0).expect("the server reads");
        let mut answer = [0; 1000];
        if !matches!(sys::recv(&stream, &mut answer, 0), Ok(1..)) {
            return vec!["no answer".to_owned()];
        }
        stalls += usize::from(started.elapsed() >= Duration::from_millis(38));
    }
    // A busy machine may stall one of them; Nagle would stall very many.
    vec![format!("flows: {}", stalls < ROUNDS / 10)]
}
