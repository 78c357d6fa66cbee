//! The raw client: plays a script of [`retry_tests::wire`] and prints what it saw, one JSON line per act.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use retry_tests::wire::{Act, Answer, Saw};

/// How long any one read may block before the run has failed.
const READ_LIMIT: Duration = Duration::from_secs(10);

fn main() {
    let mut client = Client { open: Vec::new() };
    for act in std::env::args().skip(1) {
        let act: Act = serde_json::from_str(&act).expect("an act");
        if let Some(saw) = client.play(act) {
            println!("{}", serde_json::to_string(&saw).expect("plain data"));
        }
    }
}

/// All connections; the last one is acted upon.
struct Client {
    open: Vec<BufReader<TcpStream>>,
}

impl Client {
    fn play(&mut self, act: Act) -> Option<Saw> {
        match act {
            Act::Connect { to, limit_ms: None } => Some(self.keep(TcpStream::connect(to))),
            Act::Connect { to, limit_ms: Some(limit) } => {
                Some(self.keep(TcpStream::connect_timeout(&to, Duration::from_millis(limit))))
            }
            Act::ConnectInside { netns, to } => {
                Some(self.keep(retry_tests::netns::inside(&netns, || TcpStream::connect(to))))
            }
            Act::Send { text, cuts } => self.send_pieces(text.as_bytes(), &cuts),
            Act::SendBytes { bytes } => self.send_pieces(&bytes, &[]),
            Act::Fill { byte, count } => self.send_pieces(&vec![byte; count], &[]),
            Act::Answer { bodiless } => Some(self.last().map_or_else(no_connection, |from| {
                answer(from, bodiless).map_or_else(|error| Saw::ReadFailed(name(&error)), Saw::Answer)
            })),
            Act::Head => Some(self.last().map_or_else(no_connection, |from| {
                head(from).map_or_else(|error| Saw::ReadFailed(name(&error)), |head| Saw::Head(head.status))
            })),
            Act::Bytes { count } => Some(self.last().map_or_else(no_connection, |from| {
                let mut bytes = vec![0; count];
                let read = from.read_exact(&mut bytes);
                read.map_or_else(|error| Saw::ReadFailed(name(&error)), |()| Saw::Bytes(bytes))
            })),
            Act::Readable => self.last().and_then(wait_until_readable),
            Act::TryAnswer { limit_ms } => Some(self.try_answer(Duration::from_millis(limit_ms))),
            Act::End => Some(self.last().map_or_else(no_connection, end)),
            Act::Mark(text) => Some(Saw::Mark(text)),
            Act::ShutdownWrite => self.shutdown(),
            Act::Close => self.open.pop().and(None),
            Act::Reset => self.reset(),
        }
    }

    fn last(&mut self) -> Option<&mut BufReader<TcpStream>> {
        self.open.last_mut()
    }

    fn keep(&mut self, connected: io::Result<TcpStream>) -> Saw {
        match connected {
            Ok(stream) => {
                stream.set_nodelay(true).expect("TCP_NODELAY is always allowed");
                stream.set_read_timeout(Some(READ_LIMIT)).expect("not zero");
                self.open.push(BufReader::new(stream));
                Saw::Connected(None)
            }
            Err(error) => Saw::Connected(Some(name(&error))),
        }
    }

    fn send_pieces(&mut self, bytes: &[u8], cuts: &[usize]) -> Option<Saw> {
        let Some(connection) = self.last() else { return Some(no_connection()) };
        let mut start = 0;
        for end in cuts.iter().copied().chain([bytes.len()]) {
            if let Err(error) = connection.get_mut().write_all(&bytes[start..end]) {
                return Some(Saw::SendFailed(name(&error)));
            }
            start = end;
        }
        None
    }

    fn try_answer(&mut self, limit: Duration) -> Saw {
        let Some(connection) = self.last() else { return no_connection() };
        connection.get_ref().set_read_timeout(Some(limit)).expect("not zero");
        let saw = answer(connection, false).map_or_else(|error| Saw::ReadFailed(name(&error)), Saw::Answer);
        connection.get_ref().set_read_timeout(Some(READ_LIMIT)).expect("not zero");
        saw
    }

    fn shutdown(&mut self) -> Option<Saw> {
        let Some(connection) = self.last() else { return Some(no_connection()) };
        connection.get_ref().shutdown(Shutdown::Write).err().map(|error| Saw::SendFailed(name(&error)))
    }

    fn reset(&mut self) -> Option<Saw> {
        let Some(connection) = self.open.pop() else { return Some(no_connection()) };
        close_by_reset(connection.get_ref());
        None
    }
}

/// Makes the coming close of this socket a RST.
fn close_by_reset(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of::<libc::linger>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
    // SAFETY: the descriptor is open and the option's value is of the length named.
    let set =
        unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, (&raw const linger).cast(), length) };
    assert_eq!(set, 0, "SO_LINGER is always allowed");
}

fn no_connection() -> Saw {
    Saw::ReadFailed("no connection".to_owned())
}

/// The kernel's name of an error where one comes up here, else the error's own words.
fn name(error: &io::Error) -> String {
    let name = match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => "ECONNREFUSED",
        Some(libc::ECONNRESET) => "ECONNRESET",
        Some(libc::EPIPE) => "EPIPE",
        Some(libc::ETIMEDOUT) => "ETIMEDOUT",
        Some(libc::EAGAIN) => "EAGAIN",
        _ if error.kind() == io::ErrorKind::TimedOut => "timed out",
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "eof",
        _ => return error.to_string(),
    };
    name.to_owned()
}

fn wait_until_readable(connection: &mut BufReader<TcpStream>) -> Option<Saw> {
    if !connection.buffer().is_empty() {
        return None;
    }
    let mut poll = libc::pollfd { fd: connection.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let limit = i32::try_from(READ_LIMIT.as_millis()).expect("a short limit");
    // SAFETY: one valid pollfd is passed, as the count says.
    let ready = unsafe { libc::poll(&raw mut poll, 1, limit) };
    (ready != 1).then(|| Saw::ReadFailed("nothing to read".to_owned()))
}

fn end(connection: &mut BufReader<TcpStream>) -> Saw {
    let mut bytes = 0;
    let mut block = [0; 65536];
    loop {
        match connection.read(&mut block) {
            Ok(0) => return Saw::Ended { how: "eof".to_owned(), bytes },
            Ok(count) => bytes += count as u64,
            Err(error) => return Saw::Ended { how: name(&error), bytes },
        }
    }
}

struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

fn head(from: &mut BufReader<TcpStream>) -> io::Result<Head> {
    let first = line(from)?;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, format!("not a status line: {first}"));
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    let mut headers = Vec::new();
    loop {
        let line = line(from)?;
        if line.is_empty() {
            return Ok(Head { status, headers });
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| io::Error::other(format!("not a header: {line}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn answer(from: &mut BufReader<TcpStream>, bodiless: bool) -> io::Result<Answer> {
    let mut interim = Vec::new();
    let head = loop {
        let head = head(from)?;
        if head.status >= 200 || head.status == 101 {
            break head;
        }
        interim.push(head.status);
    };
    let mut body = Vec::new();
    let lookup =
        |name: &str| head.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str());
    if bodiless || head.status == 204 || head.status == 304 || head.status == 101 {
        // No body follows, whatever the headers say.
    } else if lookup("transfer-encoding") == Some("chunked") {
        chunks(from, &mut body)?;
    } else if let Some(length) = lookup("content-length").and_then(|value| value.parse().ok()) {
        body.resize(length, 0);
        from.read_exact(&mut body)?;
    } else {
        from.read_to_end(&mut body)?;
    }
    let mut hash = DefaultHasher::new();
    hash.write(&body);
    let (body_len, body_hash) = (body.len() as u64, hash.finish());
    Ok(Answer { status: head.status, interim, headers: head.headers, body_len, body_hash })
}

fn chunks(from: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let line_with_length = line(from)?;
        let digits = line_with_length.split(';').next().unwrap_or_default();
        let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        if length == 0 {
            while !line(from)?.is_empty() {}
            return Ok(());
        }
        let start = body.len();
        body.resize(start + length, 0);
        from.read_exact(&mut body[start..])?;
        line(from)?;
    }
}

fn line(from: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
}
