//! A server that speaks no HTTP: keeps every byte and does with the connection what a test says.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use super::Acceptor;

/// A running server, stopped when dropped.
#[derive(Debug)]
pub struct Peer {
    acceptor: Acceptor,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Peer {
    /// Sends every byte back.
    pub fn echo() -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        Self { acceptor: Acceptor::start((Ipv4Addr::LOCALHOST, 0).into(), move |s| echo(s, &kept)), received }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.acceptor.address
    }

    /// Every byte it got, of all connections, in the order of arrival.
    pub fn received(&self) -> Vec<u8> {
        self.received.lock().expect("no holder panics").clone()
    }
}

fn echo(mut stream: TcpStream, received: &Mutex<Vec<u8>>) {
    let mut block = [0; 65536];
    while let Ok(count @ 1..) = stream.read(&mut block) {
        received.lock().expect("no holder panics").extend_from_slice(&block[..count]);
        if stream.write_all(&block[..count]).is_err() {
            return;
        }
    }
}
