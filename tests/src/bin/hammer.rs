//! Many threads that call one server as fast as it answers, each call with a fixed number of attempts.
//!
//! `hammer ADDRESS THREADS CALLS ATTEMPTS PREFIX`: with a PREFIX ending in `=` every call has a target of its own,
//! otherwise all calls are the same request. Prints one JSON line with what was sent and read.

use std::io::{self, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use retry_tests::answer::{self, Answer};
use serde_json::json;

/// What one thread counted.
#[derive(Default)]
struct Counts {
    sent: u64,
    succeeded: u64,
    failed: u64,
    denied: u64,
    broken: Vec<String>,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let address: SocketAddr = args[0].parse().expect("an address");
    let number = |at: usize| -> u64 { args[at].parse().expect("a number") };
    let (threads, calls, attempts, prefix) = (number(1), number(2), number(3), args[4].as_str());
    let start = Barrier::new(usize::try_from(threads).expect("few threads"));
    let mut total = Counts::default();
    thread::scope(|scope| {
        let hammers: Vec<_> = (0..threads)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let mut hammer = Hammer { address, connection: None, counts: Counts::default() };
                    for call in 0..calls {
                        let own =
                            if prefix.ends_with('=') { format!("{thread}-{call}") } else { String::new() };
                        hammer.call(&format!("{prefix}{own}"), attempts);
                    }
                    hammer.counts
                })
            })
            .collect();
        for hammer in hammers {
            total.add(hammer.join().expect("no thread panics"));
        }
    });
    println!(
        "{}",
        json!({ "sent": total.sent, "succeeded": total.succeeded, "failed": total.failed, "denied": total.denied,
            "broken": total.broken })
    );
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.denied += other.denied;
        self.broken.extend(other.broken);
    }
}

struct Hammer {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    counts: Counts,
}

impl Hammer {
    fn call(&mut self, target: &str, attempts: u64) {
        for _ in 0..attempts {
            self.counts.sent += 1;
            match self.attempt(target) {
                Ok(answer) => {
                    if answer.closes {
                        self.connection = None;
                    }
                    if answer.status < 500 {
                        self.counts.succeeded += 1;
                        return;
                    }
                    self.counts.failed += 1;
                    self.counts.denied += u64::from(answer.denied);
                }
                Err(error) => {
                    self.connection = None;
                    self.counts.broken.push(format!("{target}: {error}"));
                }
            }
        }
    }

    fn attempt(&mut self, target: &str) -> io::Result<Answer> {
        if self.connection.is_none() {
            let stream = TcpStream::connect(self.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            self.connection = Some(BufReader::new(stream));
        }
        let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let request = format!("GET {target} HTTP/1.1\r\nHost: hammered\r\n\r\n");
        connection.get_mut().write_all(request.as_bytes())?;
        answer::read(connection, false)
    }
}
