//! The call that every row makes, and the plain reading of its answer.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A row that blocks longer has hung.
const LIMIT: Duration = Duration::from_secs(10);

/// One call to a server.
pub struct Call {
    pub address: SocketAddr,
    path: String,
    denied: bool,
}

impl Call {
    pub fn new(address: SocketAddr, denied: bool, row: &str) -> Self {
        let path = format!("/{}/{row}", if denied { "fails" } else { "healthy" });
        Self { address, path, denied }
    }

    /// A new connection, after the call with this body has failed once if it is to be denied.
    pub fn connect(&self, body: &[u8]) -> TcpStream {
        self.connect_after(&[&self.request(body)])
    }

    /// The same where head and body are sent one after the other: a retry is known by what leaves with its head.
    pub fn connect_in_two(&self, body: &[u8]) -> TcpStream {
        self.connect_after(&[&self.head(body.len()), body])
    }

    fn connect_after(&self, failing: &[&[u8]]) -> TcpStream {
        if self.denied {
            let mut plain = self.connection();
            plain.set_nodelay(true).expect("always allowed");
            for part in failing {
                plain.write_all(part).expect("the server reads");
            }
            read_answer(&mut plain);
        }
        self.connection()
    }

    /// A connection and nothing else.
    pub fn connection(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(LIMIT)).expect("not zero");
        stream
    }

    /// The head of the request.
    pub fn head(&self, body_len: usize) -> Vec<u8> {
        let path = &self.path;
        format!("POST {path} HTTP/1.1\r\nHost: rows\r\nContent-Length: {body_len}\r\n\r\n").into_bytes()
    }

    /// The whole request.
    pub fn request(&self, body: &[u8]) -> Vec<u8> {
        [&self.head(body.len()), body].concat()
    }

    /// A connection on which the whole request was sent at once.
    pub fn send(&self, body: &[u8]) -> TcpStream {
        let mut stream = self.connect(body);
        stream.write_all(&self.request(body)).expect("the server reads");
        stream
    }

    /// A connection on which all but the last byte was sent: nobody answers before [`finish`].
    pub fn begin(&self) -> TcpStream {
        let mut stream = self.connect(BODY);
        let request = self.request(BODY);
        stream.write_all(&request[..request.len() - 1]).expect("the server reads");
        stream
    }
}

/// The body of most rows.
pub const BODY: &[u8] = b"The first 32 bytes are what a retry is known by; the last is kept.";

/// Sends the byte that [`Call::begin`] held back.
pub fn finish(mut stream: &TcpStream) {
    stream.write_all(&BODY[BODY.len() - 1..]).expect("the connection takes a byte");
}

/// Reads to the end of the connection.
pub fn read_to_end(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(error) => format!("{} bytes, then {error}", bytes.len()).into_bytes(),
    }
}

fn read_answer(stream: &mut TcpStream) {
    let bytes = read_to_end(stream);
    assert!(bytes.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&bytes));
}

/// Whether these bytes are one whole answer and nothing else.
pub fn verdict_on(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1000)]).to_ascii_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return format!("no answer: {text}") };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let body = bytes.len() - head.len() - 4;
    if !head.starts_with("http/1.1 ") || length != Some(body) {
        return format!("{body} of {length:?} bytes after {head}");
    }
    "one whole answer".to_owned()
}

/// A hash, where an answer's content matters.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    hash.write(bytes);
    hash.finish()
}
