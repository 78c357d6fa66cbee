//! What a server saw, shared by its connections.

use std::collections::HashMap;
use std::sync::Mutex;

use super::plan::{Plan, Reply};

/// One request that arrived whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Position of its connection in [`super::Origin::connections`].
    pub connection: usize,
    pub method: String,
    pub target: String,
    pub version: String,
    pub headers: Vec<(String, String)>,
    /// Length of the body without its chunk lines.
    pub body_len: u64,
    /// Hash of the body without its chunk lines.
    pub body_hash: u64,
    /// Every byte of it, head, chunk lines and trailers included.
    pub wire_len: u64,
}

impl Request {
    /// The value of the first header line of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// How a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Open,
    /// The client's FIN.
    Fin,
    /// A RST.
    Reset,
    /// The server ended it, by plan.
    Ours,
}

/// One accepted connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// Bytes that arrived.
    pub bytes: u64,
    pub end: End,
}

/// Everything a server remembers.
#[derive(Debug, Default)]
pub(super) struct Books(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    plans: HashMap<String, Plan>,
    requests: Vec<Request>,
    connections: Vec<Connection>,
}

impl Books {
    pub fn plan(&self, path: &str, plan: Plan) {
        self.with(|pages| pages.plans.insert(path.to_owned(), plan));
    }

    pub fn requests(&self) -> Vec<Request> {
        self.with(|pages| pages.requests.clone())
    }

    pub fn connections(&self) -> Vec<Connection> {
        self.with(|pages| pages.connections.clone())
    }

    /// A new connection; gives its position.
    pub fn open(&self) -> usize {
        self.with(|pages| {
            pages.connections.push(Connection { bytes: 0, end: End::Open });
            pages.connections.len() - 1
        })
    }

    pub fn arrived(&self, connection: usize, bytes: usize) {
        self.with(|pages| pages.connections[connection].bytes += bytes as u64);
    }

    /// The first end counts: after our FIN the client's says nothing.
    pub fn ended(&self, connection: usize, end: End) {
        self.with(|pages| {
            let connection = &mut pages.connections[connection];
            if connection.end == End::Open {
                connection.end = end;
            }
        });
    }

    /// Writes a request down and says what becomes of it.
    pub fn request(&self, request: Request) -> Reply {
        self.with(|pages| {
            let path = request.target.split('?').next().unwrap_or_default();
            let reply = pages.plans.get_mut(path).map_or_else(|| Reply::status(200), Plan::next);
            pages.requests.push(request);
            reply
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Pages) -> T) -> T {
        act(&mut self.0.lock().expect("no holder panics"))
    }
}
