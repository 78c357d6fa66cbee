//! A scripted HTTP/1.1 server: answers by plan, and remembers every request, every byte and every RST.
//!
//! One thread per connection, blocking, on a port the kernel chose. What it counted is the truth that the agent's
//! counts are compared with.

mod peer;
mod plan;
mod read;
mod record;
mod serve;

pub use peer::Peer;
pub use plan::{Plan, Reply};
pub use record::{Connection, End, Request};

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use self::record::Books;
use crate::netns::Netns;
use crate::wait;

/// A running server, stopped when dropped.
#[derive(Debug)]
pub struct Origin {
    acceptor: Acceptor,
    books: Arc<Books>,
}

impl Origin {
    /// On 127.0.0.1.
    pub fn start() -> Self {
        Self::on(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// On ::1.
    pub fn start_v6() -> Self {
        Self::on(IpAddr::V6(Ipv6Addr::LOCALHOST))
    }

    /// On this address of the current network namespace.
    ///
    /// # Panics
    /// When the address cannot be had.
    pub fn on(address: IpAddr) -> Self {
        Self::at(SocketAddr::new(address, 0))
    }

    /// On this address and port, for namespaces in which every port is free.
    ///
    /// # Panics
    /// When they cannot be had.
    pub fn at(address: SocketAddr) -> Self {
        let books = Arc::new(Books::default());
        let for_connections = Arc::clone(&books);
        let serve = move |stream: TcpStream| serve::connection(stream, &for_connections);
        Self { acceptor: Acceptor::start(address, serve), books }
    }

    /// On this address of another network namespace.
    pub fn inside(netns: &Netns, address: IpAddr) -> Self {
        netns.inside(|| Self::on(address))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.acceptor.address
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// From now on requests for `path` (without the query) are answered by this plan; without one by 200.
    pub fn plan(&self, path: &str, plan: impl Into<Plan>) {
        self.books.plan(path, plan.into());
    }

    /// Every request that arrived whole, in the order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.books.requests()
    }

    /// Those whose target begins with `path`.
    pub fn requests_to(&self, path: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.target.starts_with(path)).collect()
    }

    /// Every connection, in the order of acceptance.
    pub fn connections(&self) -> Vec<Connection> {
        self.books.connections()
    }

    /// Bytes that arrived and belong to no whole request; whoever denies cleanly leaves none.
    pub fn stray_bytes(&self) -> u64 {
        let arrived: u64 = self.connections().iter().map(|connection| connection.bytes).sum();
        let of_requests: u64 = self.requests().iter().map(|request| request.wire_len).sum();
        arrived - of_requests
    }

    /// Waits until every connection has ended in one way or another.
    ///
    /// # Panics
    /// When one stays open.
    #[track_caller]
    pub fn wait_for_ends(&self) {
        wait::until("the ends of all connections", || {
            self.connections().iter().all(|connection| connection.end != End::Open)
        });
    }
}

/// The accepted connections, to be ended from outside, with the threads that serve them.
type Connections = Arc<Mutex<Vec<(TcpStream, JoinHandle<()>)>>>;

/// The thread that accepts, and those it started.
#[derive(Debug)]
struct Acceptor {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    thread: Option<JoinHandle<()>>,
    connections: Connections,
}

impl Acceptor {
    fn start(address: SocketAddr, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener =
            TcpListener::bind(address).unwrap_or_else(|e| panic!("cannot listen on {address}: {e}"));
        let listener = Arc::new(listener);
        let connections = Connections::default();
        let thread = thread::spawn({
            let (listener, connections, serve) =
                (Arc::clone(&listener), Arc::clone(&connections), Arc::new(serve));
            move || accept_all(&listener, &connections, &serve)
        });
        let address = listener.local_addr().expect("a bound socket has an address");
        Self { address, listener, thread: Some(thread), connections }
    }
}

fn accept_all<F: Fn(TcpStream) + Send + Sync + 'static>(
    listener: &TcpListener,
    connections: &Connections,
    serve: &Arc<F>,
) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let kept = stream.try_clone().expect("a descriptor to spare");
                let serve = Arc::clone(serve);
                let thread = thread::spawn(move || serve(stream));
                connections.lock().expect("no holder panics").push((kept, thread));
            }
            // The client was gone before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // The owner shut the listener down.
            Err(_) => return,
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open as long as `listener` lives; this wakes the blocked accept.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed; there is nothing to add while dropping.
            let _ = thread.join();
        }
        for (stream, thread) in
            self.connections.lock().map(|mut all| std::mem::take(&mut *all)).into_iter().flatten()
        {
            // Fails when the other side has already gone.
            let _ = stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

/// Ends a connection by RST at once, whoever else holds its descriptor.
fn reset(stream: &TcpStream) {
    let nobody = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    let length = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the descriptor is open and the address is of the length named.
    let result = unsafe { libc::connect(stream.as_raw_fd(), &raw const nobody, length) };
    assert_eq!(result, 0, "a connection can always be dissolved");
}
