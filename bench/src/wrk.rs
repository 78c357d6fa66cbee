//! The client: wrk, with requests of an exact length, and its result as numbers.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::setup::Load;

/// Makes wrk end with one line of numbers. It has no function `request`: wrk then builds its request once, in
/// C, and costs little beside the origin.
const SCRIPT: &str = "done = function(summary, latency, requests)\n    local e = summary.errors\n    \
    io.write(string.format(\"retry-bench %d %d %d %d\\n\", summary.requests, summary.duration, \
    e.connect + e.read + e.write + e.timeout, e.status))\nend\n";

/// Begins the line of numbers.
const MARK: &str = "retry-bench ";

/// The fields of an ordinary client library, for heads with room for them.
const FIELDS: [&str; 5] = [
    "User-Agent: bench/1.0 (linux; x86_64)",
    "Accept: application/json, text/plain, */*",
    "Accept-Encoding: gzip, deflate, br",
    "Authorization: Bearer 0123456789abcdef0123456789abcdef",
    "X-Tenant: a-customer-of-the-shop",
];

/// What wrk saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Answers that came.
    pub answers: u64,
    /// From the first to the last, microseconds.
    pub duration_us: u64,
    /// Connects, reads and writes that failed, and answers that did not come.
    pub socket_errors: u64,
    /// Answers with a status of 400 and more.
    pub failures: u64,
}

impl Seen {
    /// Answers per second.
    pub fn rate(&self) -> f64 {
        self.answers as f64 * 1e6 / self.duration_us.max(1) as f64
    }
}

/// Writes the script for wrk.
///
/// # Errors
/// When it cannot be written.
pub fn write_script(file: &Path) -> Result<()> {
    fs::write(file, SCRIPT).with_context(|| format!("cannot write {}", file.display()))
}

/// wrk's arguments for one run.
///
/// # Errors
/// When no request can be as short as the load wants it.
pub fn args(origin: SocketAddr, load: Load, seconds: u32, script: &Path) -> Result<Vec<OsString>> {
    let head = Head::of_length(origin, load.head_bytes)?;
    let mut args: Vec<OsString> =
        vec!["--threads".into(), "1".into(), "--script".into(), PathBuf::from(script).into()];
    args.extend(["--connections".into(), load.connections.to_string().into()]);
    args.extend(["--duration".into(), format!("{seconds}s").into()]);
    for field in head.fields {
        args.extend(["--header".into(), field.into()]);
    }
    args.push(format!("http://{origin}{}", head.path).into());
    Ok(args)
}

/// The numbers at the end of what wrk printed.
///
/// # Errors
/// When they are not there, or say that nothing was answered.
pub fn parse(printed: &str) -> Result<Seen> {
    let line = printed.lines().find_map(|line| line.strip_prefix(MARK)).context("wrk printed no result")?;
    let numbers: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    let [answers, duration_us, socket_errors, failures] = numbers[..] else {
        bail!("wrk printed an unknown result: {line}");
    };
    if answers == 0 {
        bail!("the origin answered nothing");
    }
    Ok(Seen { answers, duration_us, socket_errors, failures })
}

/// A request's head: `GET path HTTP/1.1`, `Host`, and fields.
struct Head {
    path: String,
    fields: Vec<&'static str>,
}

impl Head {
    /// As many fields as fit, and a path that fills the rest exactly.
    fn of_length(origin: SocketAddr, length: usize) -> Result<Self> {
        let mut head = Self { path: "/".to_owned(), fields: Vec::new() };
        for field in FIELDS {
            head.fields.push(field);
            if head.bytes(origin) > length {
                head.fields.pop();
                break;
            }
        }
        let Some(missing) = length.checked_sub(head.bytes(origin)) else {
            bail!("no request to {origin} is as short as {length} B");
        };
        head.path.push_str(&"item-".chars().cycle().take(missing).collect::<String>());
        Ok(head)
    }

    fn bytes(&self, origin: SocketAddr) -> usize {
        self.text(origin).len()
    }

    /// As wrk sends it; the order of the fields is wrk's.
    fn text(&self, origin: SocketAddr) -> String {
        let fields: String = self.fields.iter().map(|field| format!("{field}\r\n")).collect();
        format!("GET {} HTTP/1.1\r\nHost: {origin}\r\n{fields}\r\n", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 40_123);

    #[test]
    fn a_head_has_exactly_the_wanted_length() {
        for length in [50, 55, 120, 330, 2_000] {
            let head = Head::of_length(ORIGIN, length).unwrap();
            assert_eq!(head.text(ORIGIN).len(), length);
        }
        assert_eq!(Head::of_length(ORIGIN, 55).unwrap().fields.len(), 0);
        assert_eq!(Head::of_length(ORIGIN, 330).unwrap().fields.len(), FIELDS.len());
    }

    #[test]
    fn a_head_cannot_be_shorter_than_its_parts() {
        let error = Head::of_length(ORIGIN, 20).err().unwrap().to_string();
        assert_eq!(error, "no request to 127.0.0.1:40123 is as short as 20 B");
    }

    #[test]
    fn the_numbers_are_found_among_what_wrk_prints() {
        let seen = parse("Running 2s test\nRequests/sec: 5\nretry-bench 1000 2000000 3 4\n").unwrap();
        assert_eq!(seen, Seen { answers: 1_000, duration_us: 2_000_000, socket_errors: 3, failures: 4 });
        assert!((seen.rate() - 500.0).abs() < 1e-9);
        assert!(parse("Running 2s test\n").is_err());
        assert!(parse("retry-bench 1 2\n").is_err());
        assert!(parse("retry-bench 0 2000000 0 0\n").is_err());
    }
}
