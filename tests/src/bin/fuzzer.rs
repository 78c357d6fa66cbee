//! Random requests, cut at random, on kept connections, some of them pipelined; every answer is compared with what
//! it has to be.
//!
//! `fuzzer ADDRESS SEED CONNECTIONS`: the server answers 200 below `/ok` and 503 below `/f`. Prints one JSON line:
//! answers by giver, and everything that was not as it should be.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use retry_tests::answer::{self, Answer};
use serde_json::json;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let address: SocketAddr = args[0].parse().expect("an address");
    let seed: u64 = args[1].parse().expect("a number");
    let connections: u32 = args[2].parse().expect("a number");
    let mut random = Random::new(seed);
    let requests = (0..REQUESTS).map(|_| request(&mut random)).collect();
    let mut fuzzer = Fuzzer { random, requests, served: 0, denied: 0, bad: Vec::new() };
    for number in 0..connections {
        if let Err(error) = fuzzer.connection(address) {
            fuzzer.bad.push(format!("connection {number}: {error}"));
        }
    }
    println!("{}", json!({ "served": fuzzer.served, "denied": fuzzer.denied, "bad": fuzzer.bad }));
}

struct Fuzzer {
    random: Random,
    requests: Vec<Request>,
    served: u64,
    denied: u64,
    bad: Vec<String>,
}

/// Different requests; each comes several times, so that those that fail have retries.
const REQUESTS: usize = 24;

/// One request and what has to be known to read its answer.
#[derive(Clone)]
struct Request {
    bytes: Vec<u8>,
    head_len: usize,
    is_head: bool,
    fails: bool,
}

impl Fuzzer {
    /// Up to eight batches on one connection, or until a denial ends it.
    fn connection(&mut self, address: SocketAddr) -> io::Result<()> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut reader = BufReader::new(stream);
        for _ in 0..=self.random.below(8) {
            let batch: Vec<Request> = (0..self.random.pick(&[1, 1, 1, 2, 3]))
                .map(|_| self.requests[self.random.below(REQUESTS)].clone())
                .collect();
            self.send(reader.get_mut(), &batch)?;
            for request in &batch {
                let answer = answer::read(&mut reader, request.is_head)?;
                if self.judge(request, &answer) {
                    return self.expect_end(&mut reader);
                }
            }
        }
        Ok(())
    }

    /// Compares an answer with its request; whether it was a denial.
    fn judge(&mut self, request: &Request, answer: &Answer) -> bool {
        let expected = if request.fails { 503 } else { 200 };
        if answer.status != expected || answer.denied && !request.fails {
            let head = String::from_utf8_lossy(&request.bytes[..request.head_len]).into_owned();
            self.bad.push(format!("{} (denied: {}) to {head}", answer.status, answer.denied));
        }
        self.denied += u64::from(answer.denied);
        self.served += u64::from(!answer.denied);
        answer.denied
    }

    /// Nothing but the end follows a denial.
    fn expect_end(&mut self, reader: &mut BufReader<TcpStream>) -> io::Result<()> {
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest)?;
        if !rest.is_empty() {
            self.bad.push(format!("after a denial: {}", String::from_utf8_lossy(&rest)));
        }
        Ok(())
    }

    fn send(&mut self, stream: &mut TcpStream, batch: &[Request]) -> io::Result<()> {
        let bytes: Vec<u8> = batch.iter().flat_map(|request| &request.bytes).copied().collect();
        let style = self.random.below(4);
        let mut sent = 0;
        while sent < bytes.len() {
            let left = bytes.len() - sent;
            let piece = match style {
                0 => left,
                1 => 1 + self.random.below(bytes.len() / 3 + 1),
                // Small pieces where heads are likely, large ones in what must be a body.
                2 if sent < 2000 => 1 + self.random.below(50),
                2 => 20_000,
                _ if sent == 0 => batch[0].head_len,
                _ => left,
            };
            let end = bytes.len().min(sent + piece);
            match stream.write_all(&bytes[sent..end]) {
                Ok(()) => sent = end,
                // The denial of the first request of a batch has already closed this side; its answer waits.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) && batch[0].fails => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn request(random: &mut Random) -> Request {
    let method = random.pick(&["GET", "POST", "PUT", "HEAD", "DELETE"]);
    let fails = random.below(10) < 6;
    let path = format!("{}?{}", if fails { "/f" } else { "/ok" }, random.below(6));
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: fuzz\r\n");
    for number in 0..random.below(7) {
        head += &format!("X-{number}: {}\r\n", "c".repeat(random.below(60)));
    }
    let mut body = Vec::new();
    if method == "POST" || method == "PUT" {
        let length = random.pick(&[0, 1, 2, 7, 100, 127, 128, 129, 1000, 5000, 70_000, 300_000]);
        if random.below(10) < 4 {
            head += random.pick(&["Transfer-Encoding: chunked\r\n", "transfer-encoding:chunked\r\n"]);
            body = chunks(random, length);
        } else {
            let name = random.pick(&["Content-Length", "content-length", "CONTENT-LENGTH"]);
            head += &format!("{name}:{}{length}\r\n", random.pick(&["", " "]));
            body = vec![b'P'; length];
        }
    }
    head += "\r\n";
    let (head_len, is_head) = (head.len(), method == "HEAD");
    Request { bytes: [head.into_bytes(), body].concat(), head_len, is_head, fails }
}

fn chunks(random: &mut Random, mut left: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while left > 0 {
        let count = left.min(random.pick(&[1, 10, 1000, 50_000]));
        // One byte at a time would make a chunked body of 300 kB as slow as a thousand requests.
        let count = if left > 10_000 { left.min(count.max(1000)) } else { count };
        body.extend(format!("{count:x}\r\n").bytes());
        body.extend(std::iter::repeat_n(b'P', count));
        body.extend(b"\r\n");
        left -= count;
    }
    body.extend(b"0\r\n\r\n");
    body
}

/// xorshift64 (Marsaglia 2003): the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 0 to `limit` − 1.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below a usize")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
