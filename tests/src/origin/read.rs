//! Reading requests from a connection while counting every byte.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use super::record::{Books, Request};

/// A connection's incoming side.
pub(super) struct Incoming<'a> {
    pub stream: &'a TcpStream,
    pub connection: usize,
    pub books: &'a Books,
    /// Read and not yet used.
    pub rest: Vec<u8>,
    /// Bytes used for the request in hand.
    used: u64,
}

/// What of a request comes before its body.
struct Head {
    method: String,
    target: String,
    version: String,
    headers: Vec<(String, String)>,
}

impl<'a> Incoming<'a> {
    pub fn new(stream: &'a TcpStream, connection: usize, books: &'a Books) -> Self {
        Self { stream, connection, books, rest: Vec::new(), used: 0 }
    }

    /// The next request, read to its last byte. Nothing at the client's FIN, also in mid-request.
    pub fn request(&mut self) -> io::Result<Option<Request>> {
        self.used = 0;
        let Some(head) = self.head()? else { return Ok(None) };
        let lookup =
            |name: &str| head.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v);
        let waits = lookup("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        if waits && self.rest.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let chunked = lookup("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let length = lookup("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        let mut body = Body::default();
        let whole = if chunked { self.chunks(&mut body)? } else { self.bytes(length, &mut body)? };
        Ok(whole.then(|| Request {
            connection: self.connection,
            method: head.method,
            target: head.target,
            version: head.version,
            headers: head.headers,
            body_len: body.len,
            body_hash: body.hash.finish(),
            wire_len: self.used,
        }))
    }

    /// Reads on; false at FIN.
    pub fn more(&mut self) -> io::Result<bool> {
        let mut block = [0; 65536];
        let count = self.stream.read(&mut block)?;
        self.books.arrived(self.connection, count);
        self.rest.extend_from_slice(&block[..count]);
        Ok(count > 0)
    }

    fn head(&mut self) -> io::Result<Option<Head>> {
        let Some(line) = self.line()? else { return Ok(None) };
        let mut words = line.split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let mut head = Head { method: word(), target: word(), version: word(), headers: Vec::new() };
        loop {
            match self.line()? {
                None => return Ok(None),
                Some(line) if line.is_empty() => return Ok(Some(head)),
                Some(line) => {
                    let (name, value) = line.split_once(':').unwrap_or((&line, ""));
                    head.headers.push((name.to_owned(), value.trim().to_owned()));
                }
            }
        }
    }

    /// One line without its end.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut searched = 0;
        let end = loop {
            if let Some(found) = self.rest[searched..].iter().position(|byte| *byte == b'\n') {
                break searched + found + 1;
            }
            searched = self.rest.len();
            if !self.more()? {
                return Ok(None);
            }
        };
        let line = self.take(end);
        Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()))
    }

    fn chunks(&mut self, body: &mut Body) -> io::Result<bool> {
        loop {
            let Some(line) = self.line()? else { return Ok(false) };
            let digits = line.split(';').next().unwrap_or_default().trim();
            let bad = || io::Error::new(io::ErrorKind::InvalidData, format!("not a chunk length: {line}"));
            let length = u64::from_str_radix(digits, 16).map_err(|_| bad())?;
            if length == 0 {
                return self.trailers();
            }
            if !self.bytes(length, body)? || self.line()?.is_none() {
                return Ok(false);
            }
        }
    }

    fn trailers(&mut self) -> io::Result<bool> {
        loop {
            match self.line()? {
                None => return Ok(false),
                Some(line) if line.is_empty() => return Ok(true),
                Some(_) => {}
            }
        }
    }

    fn bytes(&mut self, mut left: u64, body: &mut Body) -> io::Result<bool> {
        while left > 0 {
            if self.rest.is_empty() && !self.more()? {
                return Ok(false);
            }
            let count = self.rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let piece = self.take(count);
            body.len += count as u64;
            body.hash.write(&piece);
            left -= count as u64;
        }
        Ok(true)
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        self.used += count as u64;
        let rest = self.rest.split_off(count);
        std::mem::replace(&mut self.rest, rest)
    }
}

#[derive(Default)]
struct Body {
    len: u64,
    hash: DefaultHasher,
}
