//! The raw client's script and what it saw: the language between tests and the program `wire`.
//!
//! A test writes down every byte and every cut; `wire` does just that, on a blocking socket with TCP_NODELAY, so
//! that each send is a packet of its own while the windows are open. It runs bare or under the agent, and the
//! test compares what it saw.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::require;

/// One act of the raw client. All but `Connect` are about the connection opened last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// Opens a connection; the one before stays open.
    Connect {
        to: SocketAddr,
        limit_ms: Option<u64>,
    },
    /// Opens a connection from another network namespace, entered by one thread for a moment.
    ConnectInside {
        netns: PathBuf,
        to: SocketAddr,
    },
    /// Sends a text in pieces that end at these places (and at its end).
    Send {
        text: String,
        cuts: Vec<usize>,
    },
    /// Sends bytes that are no text, in one piece.
    SendBytes {
        bytes: Vec<u8>,
    },
    /// Sends `count` times the same byte.
    Fill {
        byte: u8,
        count: usize,
    },
    /// Reads an answer to its end. `bodiless`: it answers HEAD.
    Answer {
        bodiless: bool,
    },
    /// Reads one head, such as of a 100 or 101.
    Head,
    /// Reads this many bytes.
    Bytes {
        count: usize,
    },
    /// Waits until there is something to read.
    Readable,
    /// Gives up reading after this long; then the next act.
    TryAnswer {
        limit_ms: u64,
    },
    /// Reads until the other side ends the connection.
    End,
    /// Prints this, so that a long run can be taken apart.
    Mark(String),
    ShutdownWrite,
    Close,
    /// Closes by RST.
    Reset,
}

/// What an act that can fail or see something came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Saw {
    /// The name of the error, or nothing.
    Connected(Option<String>),
    Mark(String),
    /// An error in sending.
    SendFailed(String),
    Answer(Answer),
    /// Status of a lone head.
    Head(u16),
    Bytes(Vec<u8>),
    /// `eof` or the error's name, after so many more bytes.
    Ended {
        how: String,
        bytes: u64,
    },
    /// Reading failed or the answer was broken.
    ReadFailed(String),
}

/// One HTTP answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub status: u16,
    pub interim: Vec<u16>,
    /// Header lines in lower case, without those that differ between runs.
    pub headers: Vec<(String, String)>,
    pub body_len: u64,
    pub body_hash: u64,
}

impl Answer {
    /// The value of the first header line of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Whether the kernel gave it; the budget's name if so.
    pub fn denied_by(&self) -> Option<&str> {
        self.header("x-retry-denied")
    }
}

impl Saw {
    /// The answer in it.
    ///
    /// # Panics
    /// When it is something else.
    #[track_caller]
    pub fn answer(&self) -> &Answer {
        match self {
            Self::Answer(answer) => answer,
            other => panic!("not an answer: {other:?}"),
        }
    }
}

/// A script in the making.
#[derive(Clone, Debug, Default)]
pub struct Script(Vec<Act>);

impl Script {
    /// Begins with a connection.
    pub fn to(address: SocketAddr) -> Self {
        Self::default().connect(address)
    }

    /// One more act.
    #[must_use]
    pub fn then(mut self, act: Act) -> Self {
        self.0.push(act);
        self
    }

    /// A new connection.
    #[must_use]
    pub fn connect(self, to: SocketAddr) -> Self {
        self.then(Act::Connect { to, limit_ms: None })
    }

    /// Text in one piece.
    #[must_use]
    pub fn send(self, text: &str) -> Self {
        self.send_cut(text, &[])
    }

    /// Text in pieces.
    #[must_use]
    pub fn send_cut(self, text: &str, cuts: &[usize]) -> Self {
        self.then(Act::Send { text: text.to_owned(), cuts: cuts.to_vec() })
    }

    /// Text byte by byte.
    #[must_use]
    pub fn send_bytewise(self, text: &str) -> Self {
        let cuts: Vec<usize> = (1..text.len()).collect();
        self.send_cut(text, &cuts)
    }

    /// An answer with a body.
    #[must_use]
    pub fn answer(self) -> Self {
        self.then(Act::Answer { bodiless: false })
    }

    /// The whole exchange: this text and one answer.
    #[must_use]
    pub fn exchange(self, text: &str) -> Self {
        self.send(text).answer()
    }

    /// The acts of another script after these.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The command that plays it.
    ///
    /// # Panics
    /// When `wire` is not built.
    pub fn command(&self) -> Command {
        let mut command = Command::new(require::own_program("wire"));
        // One argument per act: a single one must stay below 128 KiB.
        command.args(self.0.iter().map(|act| serde_json::to_string(act).expect("an act is plain data")));
        command
    }
}

/// The lines `wire` wrote.
///
/// # Panics
/// When a line is none.
#[track_caller]
pub fn saw(stdout: &str) -> Vec<Saw> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stdout.lines().map(parse).collect()
}
