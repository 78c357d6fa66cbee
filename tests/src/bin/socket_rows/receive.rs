//! Ways to read an answer.

use std::net::Shutdown;
use std::time::Duration;

use crate::Seen;
use crate::call::{BODY, Call, finish, hash, read_to_end, verdict_on};
use crate::sys;

/// Long enough for any answer but the big ones.
const ROOM: usize = 65_536;

/// How much waits is told rightly.
pub fn fionread(call: &Call) -> Seen {
    let stream = call.send(BODY);
    sys::until_closed_by_peer(&stream);
    let told = sys::fionread(&stream);
    let bytes = read_to_end(&stream);
    vec![format!("told all: {}", told == bytes.len()), verdict_on(&bytes)]
}

/// What is peeked at stays.
pub fn msg_peek(call: &Call) -> Seen {
    let stream = call.send(BODY);
    sys::until_closed_by_peer(&stream);
    let mut peeked = vec![0; ROOM];
    let count = sys::recv(&stream, &mut peeked, libc::MSG_PEEK).expect("something waits");
    let bytes = read_to_end(&stream);
    vec![format!("peeked all: {}", peeked[..count] == bytes), verdict_on(&bytes)]
}

/// Each peek goes on where the last one ended.
pub fn so_peek_off(call: &Call) -> Seen {
    let stream = call.send(BODY);
    sys::until_readable(&stream);
    let set = sys::set(&stream, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 0);
    let mut seen = vec![format!("set: {:?}", set.map_err(|error| sys::name(&error)))];
    for _ in 0..2 {
        let mut piece = [0; 4];
        let count = sys::recv(&stream, &mut piece, libc::MSG_PEEK).expect("something waits");
        seen.push(String::from_utf8_lossy(&piece[..count]).into_owned());
    }
    seen.push(verdict_on(&read_to_end(&stream)));
    seen
}

/// A read tells what is left.
pub fn tcp_inq(call: &Call) -> Seen {
    let stream = call.send(BODY);
    sys::until_closed_by_peer(&stream);
    sys::set(&stream, libc::IPPROTO_TCP, libc::TCP_INQ, 1).expect("TCP_INQ is old");
    let mut first = [0; 9];
    let kinds = [libc::TCP_CM_INQ];
    let read = sys::recv_control(&stream, &mut first, 0, libc::SOL_TCP, &kinds).expect("something waits");
    let told = read.1.and_then(|bytes| Some(i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)));
    let rest = read_to_end(&stream);
    // The server's FIN counts as one more, so that the program reads on to the end.
    let right = told == i32::try_from(rest.len() + 1).ok();
    vec![String::from_utf8_lossy(&first).into_owned(), format!("told the rest: {right}")]
}

/// A read that wants so many bytes gets them, also when they come in two packets.
pub fn msg_waitall(call: &Call) -> Seen {
    let stream = call.send(BODY);
    let mut first = [0; 60];
    let result = sys::recv(&stream, &mut first, libc::MSG_WAITALL);
    let mut bytes = first.to_vec();
    bytes.extend(read_to_end(&stream));
    vec![format!("all: {}", matches!(result, Ok(60))), verdict_on(&bytes)]
}

/// A read with a limit ends with EAGAIN, and the connection goes on.
pub fn so_rcvtimeo(call: &Call) -> Seen {
    let stream = call.begin();
    stream.set_read_timeout(Some(Duration::from_millis(80))).expect("not zero");
    let early = sys::kind(&sys::recv(&stream, &mut [0; 10], 0));
    stream.set_read_timeout(None).expect("none is allowed");
    finish(&stream);
    vec![early, verdict_on(&read_to_end(&stream))]
}

/// An answer longer than the buffers waits for its reader.
pub fn slow_reader(call: &Call) -> Seen {
    let stream = call.connect(BODY);
    sys::set(&stream, libc::SOL_SOCKET, libc::SO_RCVBUF, 16_384).expect("a small buffer is allowed");
    sys::send(&stream, &call.request(BODY), 0).expect("the server reads");
    sys::until_readable(&stream);
    let mut bytes = Vec::new();
    loop {
        // As slow as a reader can be without wasting time: 5000 bytes at each wake-up.
        sys::until_readable(&stream);
        let mut piece = [0; 5000];
        match sys::recv(&stream, &mut piece, 0) {
            Ok(0) => break,
            Ok(count) => bytes.extend(&piece[..count]),
            Err(error) => return vec![sys::name(&error)],
        }
    }
    let big = bytes.len() > 100_000;
    let content = if big { format!("hash {:x}", hash(&bytes)) } else { "short".to_owned() };
    vec![verdict_on(&bytes), content]
}

/// The answer comes after the client has closed its side.
pub fn half_close(call: &Call) -> Seen {
    let stream = call.send(BODY);
    stream.shutdown(Shutdown::Write).expect("the connection is open");
    let bytes = read_to_end(&stream);
    vec![verdict_on(&bytes), sys::kind(&sys::send(&stream, b"x", libc::MSG_NOSIGNAL))]
}

/// The answer through a pipe, without a copy in user space.
pub fn splice_out(call: &Call) -> Seen {
    let stream = call.send(BODY);
    let (from, to) = sys::pipe();
    let mut bytes = Vec::new();
    loop {
        match sys::splice(&stream, &to, 4096) {
            Ok(0) => return vec![verdict_on(&bytes)],
            Ok(count) => {
                let mut piece = vec![0; count];
                let file = std::fs::File::from(from.try_clone().expect("a descriptor to spare"));
                std::io::Read::read_exact(&mut &file, &mut piece).expect("it is in the pipe");
                bytes.extend(piece);
            }
            Err(error) => return vec![verdict_on(&bytes), sys::name(&error)],
        }
    }
}
