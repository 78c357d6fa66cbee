//! Reading the agent's metrics as Prometheus would.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One line of the text format.
#[derive(Clone, Debug)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// One scrape.
#[derive(Clone, Debug)]
pub struct Samples(pub Vec<Sample>);

impl Samples {
    /// Reads the text format.
    ///
    /// # Panics
    /// On a line that is neither a comment nor a sample.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.map(|line| sample(line).unwrap_or_else(|| panic!("not a sample: {line}"))).collect())
    }

    /// The samples of this name that carry all these labels.
    pub fn matching<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Sample> {
        let carries =
            |sample: &Sample, key: &str, value: &str| sample.labels.get(key).is_some_and(|v| v == value);
        self.0.iter().filter(move |sample| {
            sample.name == name && labels.iter().all(|(key, value)| carries(sample, key, value))
        })
    }

    /// Their sum, 0 where there is none.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|sample| sample.value).sum()
    }
}

/// GETs a path; gives the status and the body.
///
/// # Errors
/// When nobody answers, or not in HTTP.
pub fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let limit = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let not_http = || io::Error::new(io::ErrorKind::InvalidData, format!("not an HTTP answer: {text}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(not_http)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(not_http)?;
    Ok((status, body.to_owned()))
}

fn sample(line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        None => (series, ""),
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
    };
    let labels = labels.split("\",").filter(|label| !label.is_empty()).map(label).collect::<Option<_>>()?;
    Some(Sample { name: name.to_owned(), labels, value: value.parse().ok()? })
}

/// One `key="value"`; the quote at its end may have gone with the comma.
fn label(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once("=\"")?;
    Some((key.to_owned(), value.strip_suffix('"').unwrap_or(value).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels() {
        let samples =
            Samples::parse("# HELP a b\na_total{x=\"1\",y=\"p:q, r\"} 3\na_total{x=\"2\",y=\"\"} 4\nb 0.5\n");
        assert_eq!(samples.sum("a_total", &[]), 7.0);
        assert_eq!(samples.sum("a_total", &[("y", "p:q, r")]), 3.0);
        assert_eq!(samples.sum("b", &[]), 0.5);
        assert_eq!(samples.sum("c", &[]), 0.0);
    }
}
