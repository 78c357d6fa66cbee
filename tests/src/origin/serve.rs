//! One connection from its first request to its end.

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;

use super::plan::{Action, Answer};
use super::read::Incoming;
use super::record::{Books, End, Request};
use super::reset;

/// Size of the chunks of a chunked answer; small enough that every body has several.
const CHUNK: usize = 1000;

/// Serves until one side has had enough, and writes down which.
pub(super) fn connection(stream: TcpStream, books: &Books) {
    let id = books.open();
    // Each answer leaves at once; a delay here would look like a delay of the agent.
    stream.set_nodelay(true).expect("TCP_NODELAY is always allowed");
    let end = serve(Incoming::new(&stream, id, books)).unwrap_or(End::Reset);
    books.ended(id, end);
}

fn serve(mut incoming: Incoming<'_>) -> io::Result<End> {
    while let Some(request) = incoming.request()? {
        let reply = incoming.books.request(request.clone());
        if !reply.after.is_zero() {
            thread::sleep(reply.after);
        }
        match reply.action {
            Action::Answer(answer) => {
                let last = answer.close || is_last(&request);
                incoming.stream.write_all(&bytes(&answer, &request, last))?;
                if last {
                    return finish(&mut incoming);
                }
            }
            Action::Close => return finish(&mut incoming),
            Action::Reset => {
                reset(incoming.stream);
                return Ok(End::Ours);
            }
            Action::Hang => return drain(&mut incoming).map(|()| End::Fin),
            Action::Raw(raw) => {
                incoming.stream.write_all(&raw)?;
                return finish(&mut incoming);
            }
            Action::Tunnel(answer) => {
                incoming.stream.write_all(&bytes(&answer, &request, false))?;
                return echo(&mut incoming);
            }
        }
    }
    Ok(End::Fin)
}

/// Whether the client said that this is its last request.
fn is_last(request: &Request) -> bool {
    match request.header("connection") {
        Some(value) if value.eq_ignore_ascii_case("close") => true,
        Some(value) if value.eq_ignore_ascii_case("keep-alive") => false,
        _ => request.version == "HTTP/1.0",
    }
}

/// Closes without losing what is on its way to the client: a close with unread bytes would be a RST.
fn finish(incoming: &mut Incoming<'_>) -> io::Result<End> {
    incoming.books.ended(incoming.connection, End::Ours);
    incoming.stream.shutdown(Shutdown::Write)?;
    drain(incoming)?;
    Ok(End::Ours)
}

fn drain(incoming: &mut Incoming<'_>) -> io::Result<()> {
    while incoming.more()? {
        incoming.rest.clear();
    }
    Ok(())
}

fn echo(incoming: &mut Incoming<'_>) -> io::Result<End> {
    loop {
        let bytes = std::mem::take(&mut incoming.rest);
        incoming.stream.write_all(&bytes)?;
        if !incoming.more()? {
            return Ok(End::Fin);
        }
    }
}

fn bytes(answer: &Answer, request: &Request, last: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for status in &answer.interim {
        bytes.extend(format!("HTTP/1.1 {status} Interim\r\nx-interim: {status}\r\n\r\n").bytes());
    }
    bytes.extend(format!("HTTP/1.1 {} Planned\r\n", answer.status).bytes());
    for (name, value) in &answer.headers {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    if last {
        bytes.extend(b"Connection: close\r\n");
    }
    let bodiless = answer.status < 200 || answer.status == 204 || answer.status == 304;
    if bodiless || request.method == "CONNECT" {
        bytes.extend(b"\r\n");
    } else if answer.chunked {
        bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
        body(&mut bytes, &chunks(&answer.body), request);
    } else {
        bytes.extend(format!("Content-Length: {}\r\n\r\n", answer.body.len()).bytes());
        body(&mut bytes, &answer.body, request);
    }
    bytes
}

fn body(bytes: &mut Vec<u8>, body: &[u8], request: &Request) {
    if request.method != "HEAD" {
        bytes.extend(body);
    }
}

fn chunks(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(CHUNK) {
        bytes.extend(format!("{:x};piece=1\r\n", chunk.len()).bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\nx-trailer: 1\r\n\r\n");
    bytes
}
