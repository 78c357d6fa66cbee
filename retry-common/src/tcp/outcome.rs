//! How a connection, or the attempt that waits on it, ended without an answer.

/// States of a TCP socket as `sock_ops` names them (`include/uapi/linux/bpf.h`, `BPF_TCP_…`).
pub mod state {
    /// Data flows.
    pub const ESTABLISHED: u32 = 1;
    /// A SYN was sent.
    pub const SYN_SENT: u32 = 2;
    /// The application closed; FIN not yet acknowledged.
    pub const FIN_WAIT1: u32 = 4;
    /// Closed for good.
    pub const CLOSE: u32 = 7;
    /// The server sent FIN.
    pub const CLOSE_WAIT: u32 = 8;
}

/// An end without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The destination answered the SYN with RST.
    Refused,
    /// No answer to the SYN before the kernel or the application gave up.
    TimedOut,
    /// The connection was reset, or the kernel declared it dead.
    Reset,
    /// The server closed.
    Eof,
    /// The application closed while it waited.
    Abandoned,
}

/// What was seen of a connection when it changes its state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// State before.
    pub old: u32,
    /// State after.
    pub new: u32,
    /// RST from the server.
    pub reset: bool,
    /// FIN from the server.
    pub fin: bool,
    /// The application has closed both directions (`sk_shutdown` is 3), as opposed to `shutdown(SHUT_WR)`.
    pub closed: bool,
}

/// The end that this change of state means, if it is one.
#[inline(always)]
pub const fn outcome(seen: &Seen) -> Option<Outcome> {
    match (seen.old, seen.new) {
        (state::SYN_SENT, state::CLOSE) => {
            Some(if seen.reset { Outcome::Refused } else { Outcome::TimedOut })
        }
        (_, state::CLOSE_WAIT) => Some(Outcome::Eof),
        // close() with unread data or SO_LINGER 0 skips FIN_WAIT1.
        (_, state::CLOSE) if seen.reset => Some(Outcome::Reset),
        (_, state::CLOSE) if seen.fin => Some(Outcome::Eof),
        (_, state::CLOSE) if seen.closed => Some(Outcome::Abandoned),
        (_, state::CLOSE) => Some(Outcome::Reset),
        (_, state::FIN_WAIT1) if seen.closed => Some(Outcome::Abandoned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let seen = |old, new, flags: &str| Seen {
            old,
            new,
            reset: flags.contains('r'),
            fin: flags.contains('f'),
            closed: flags.contains('c'),
        };
        let rows = [
            ("a RST to the SYN", seen(2, 7, "r"), Some(Outcome::Refused)),
            ("silence", seen(2, 7, ""), Some(Outcome::TimedOut)),
            ("the application stopped connecting", seen(2, 7, "c"), Some(Outcome::TimedOut)),
            ("the server closed", seen(1, 8, "f"), Some(Outcome::Eof)),
            ("the server reset", seen(1, 7, "r"), Some(Outcome::Reset)),
            ("the kernel gave up", seen(1, 7, ""), Some(Outcome::Reset)),
            ("the application closed", seen(1, 4, "c"), Some(Outcome::Abandoned)),
            ("the application closed hard", seen(1, 7, "c"), Some(Outcome::Abandoned)),
            ("only half closed", seen(1, 4, ""), None),
            ("half closed, then the server closed", seen(5, 7, "f"), Some(Outcome::Eof)),
            ("half closed, then closed", seen(5, 7, "c"), Some(Outcome::Abandoned)),
            ("established", seen(2, 1, ""), None),
        ];
        for (sentence, seen, expected) in rows {
            assert_eq!(outcome(&seen), expected, "{sentence}");
        }
    }
}
