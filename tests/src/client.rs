//! Clients that nobody here wrote, each with its own retry switched on (see `tests/clients/README.md`).

use std::process::Command;

use serde::Deserialize;

use crate::require;

/// A client program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    Curl,
    Requests,
    Aiohttp,
    Go,
    Undici,
    Axios,
    Reqwest,
}

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Get,
    Post,
    Upload,
    Chunked,
    Expect,
}

/// What a client says about one call.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Said {
    pub status: Option<u16>,
    pub retry_after: Option<String>,
    pub denied: Option<String>,
    pub error: Option<String>,
}

impl Kind {
    /// Its name on a client's command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Upload => "upload",
            Self::Chunked => "chunked",
            Self::Expect => "expect",
        }
    }
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Curl, Self::Requests, Self::Aiohttp, Self::Go, Self::Undici, Self::Axios, Self::Reqwest];

    /// The kinds of request it can make again.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Curl | Self::Requests | Self::Aiohttp | Self::Go | Self::Axios => {
                &[Kind::Get, Kind::Post, Kind::Upload, Kind::Chunked, Kind::Expect]
            }
            Self::Undici | Self::Reqwest => &[Kind::Get, Kind::Post, Kind::Upload],
        }
    }

    /// Attempts per call that keep a test quick: curl waits a second before each retry.
    pub fn attempts(self) -> u64 {
        if self == Self::Curl { 2 } else { 3 }
    }

    /// The command that makes these calls one after the other.
    ///
    /// # Panics
    /// When the client is not installed.
    pub fn command(self, attempts: u64, calls: &[(Kind, String)]) -> Command {
        let mut command = self.program();
        command.arg(attempts.to_string());
        for (kind, url) in calls {
            command.arg(kind.name()).arg(url);
        }
        command
    }

    fn program(self) -> Command {
        let script = |interpreter: std::path::PathBuf, script: std::path::PathBuf| {
            let mut command = Command::new(interpreter);
            command.arg(script);
            command
        };
        let python = |name: &str| {
            script(
                require::clients().join("venv/bin/python"),
                require::client_sources().join("python").join(name),
            )
        };
        let node = |name: &str| script("node".into(), require::clients().join("node").join(name));
        match self {
            Self::Curl => script("bash".into(), require::client_sources().join("curl/curl.sh")),
            Self::Requests => python("requests_retry.py"),
            Self::Aiohttp => python("aiohttp_tenacity.py"),
            Self::Go => Command::new(require::clients().join("go-retryablehttp")),
            Self::Undici => node("undici_retry_agent.mjs"),
            Self::Axios => node("axios_retry.mjs"),
            Self::Reqwest => Command::new(require::own_program("client_reqwest")),
        }
    }
}

/// The lines a client wrote, one per call.
///
/// # Panics
/// When a line is none.
#[track_caller]
pub fn said(stdout: &str) -> Vec<Said> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stdout.lines().map(parse).collect()
}
