//! What a server does with the n-th request for a path.

use std::time::Duration;

/// What becomes of one request, and after how long.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) after: Duration,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Answer(Answer),
    /// FIN without a byte.
    Close,
    /// RST without a byte.
    Reset,
    /// Nothing, until the client goes.
    Hang,
    /// This answer, and then every byte is sent back.
    Tunnel(Answer),
    /// These bytes as they are, then FIN.
    Raw(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub interim: Vec<u16>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub chunked: bool,
    pub close: bool,
}

impl Reply {
    /// An answer with this status and a short body.
    pub fn status(status: u16) -> Self {
        let body = format!("{status}\n").into_bytes();
        let answer =
            Answer { status, interim: Vec::new(), headers: Vec::new(), body, chunked: false, close: false };
        Self { after: Duration::ZERO, action: Action::Answer(answer) }
    }

    /// FIN instead of an answer.
    pub fn close() -> Self {
        Self { after: Duration::ZERO, action: Action::Close }
    }

    /// RST instead of an answer.
    pub fn reset() -> Self {
        Self { after: Duration::ZERO, action: Action::Reset }
    }

    /// No answer, ever.
    pub fn hang() -> Self {
        Self { after: Duration::ZERO, action: Action::Hang }
    }

    /// Bytes as they are, then FIN.
    pub fn raw(bytes: &[u8]) -> Self {
        Self { after: Duration::ZERO, action: Action::Raw(bytes.to_vec()) }
    }

    /// An answer without a body, after which every byte comes back: 101 to an upgrade, 200 to CONNECT.
    pub fn tunnel(status: u16) -> Self {
        let Action::Answer(answer) = Self::status(status).action else { unreachable!("status() answers") };
        Self { after: Duration::ZERO, action: Action::Tunnel(answer) }
    }

    /// The same, this much later.
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// The same answer with this body.
    #[must_use]
    pub fn body(self, body: Vec<u8>) -> Self {
        self.change(|answer| answer.body = body)
    }

    /// The same answer with its body in chunks.
    #[must_use]
    pub fn chunked(self) -> Self {
        self.change(|answer| answer.chunked = true)
    }

    /// The same answer with one more header line.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.change(|answer| answer.headers.push((name.to_owned(), value.to_owned())))
    }

    /// The same answer after these 1xx.
    #[must_use]
    pub fn interim(self, statuses: &[u16]) -> Self {
        self.change(|answer| answer.interim.extend(statuses))
    }

    /// The same answer, after which the server closes.
    #[must_use]
    pub fn closing(self) -> Self {
        self.change(|answer| answer.close = true)
    }

    fn change(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        match &mut self.action {
            Action::Answer(answer) | Action::Tunnel(answer) => change(answer),
            other => panic!("{other:?} is no answer"),
        }
        self
    }
}

/// Replies in order; the last one for ever.
#[derive(Clone, Debug)]
pub struct Plan {
    first: Vec<Reply>,
    last: Reply,
    next: usize,
}

impl Plan {
    /// This reply `times` times, then 200.
    pub fn times(times: usize, reply: Reply) -> Self {
        Self { first: vec![reply; times], last: Reply::status(200), next: 0 }
    }

    /// The same with another reply for ever after.
    #[must_use]
    pub fn then(mut self, reply: Reply) -> Self {
        self.last = reply;
        self
    }

    pub(super) fn next(&mut self) -> Reply {
        let reply = self.first.get(self.next).unwrap_or(&self.last).clone();
        self.next += 1;
        reply
    }
}

impl From<Reply> for Plan {
    fn from(reply: Reply) -> Self {
        Self { first: Vec::new(), last: reply, next: 0 }
    }
}
