//! What a client that makes many calls has to know of each answer.

use std::io::{self, BufRead};

/// An answer that was read to its end.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub status: u16,
    /// Whether the kernel gave it.
    pub denied: bool,
    /// Whether the connection ends behind it.
    pub closes: bool,
}

/// Reads one answer with a body by length. `bodiless`: it answers HEAD.
///
/// # Errors
/// When the connection fails or ends early, or what comes is no answer.
pub fn read(from: &mut impl BufRead, bodiless: bool) -> io::Result<Answer> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("end after {head:?}")));
        }
    }
    let head = head.to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    from.read_exact(&mut vec![0; if bodiless { 0 } else { length }])?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("not an answer: {head:?}")))?;
    let has = |line: &str| head.contains(line);
    Ok(Answer { status, denied: has("\r\nx-retry-denied:"), closes: has("\r\nconnection: close") })
}
