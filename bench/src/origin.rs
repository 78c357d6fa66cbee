//! The origin: one nginx process with two addresses, one that answers every request with 200 and one that
//! answers every request with 503.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::cpus::{Cpus, pinned};
use crate::place::Place;

/// Debian keeps it among the administrators' programs, where an ordinary search path does not look.
const NGINX: &str = "/usr/sbin/nginx";

/// How long nginx may take until it accepts connections.
const PATIENCE: Duration = Duration::from_secs(10);

/// The running origin; it ends when it is dropped.
pub struct Origin {
    nginx: Child,
    log: PathBuf,
    /// Answers 200.
    pub healthy: SocketAddr,
    /// Answers 503.
    pub failing: SocketAddr,
}

impl Origin {
    /// Starts nginx on the load's CPU; returns when it accepts connections.
    ///
    /// # Errors
    /// When nginx is missing, ends, or does not listen.
    pub fn start(place: &Place, cpus: &Cpus) -> Result<Self> {
        let (healthy, failing) = free_addresses()?;
        let (config, log) = (place.file("nginx.conf"), place.file("nginx.log"));
        let text = configuration(place, healthy, failing);
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let output = fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut nginx = pinned(cpus.load, NGINX);
        nginx.arg("-p").arg(&place.output).arg("-c").arg(&config).stdout(Stdio::null()).stderr(output);
        let nginx = nginx.spawn().context("cannot start nginx")?;
        let mut origin = Self { nginx, log, healthy, failing };
        origin.wait_until_ready()?;
        Ok(origin)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        for address in [self.healthy, self.failing] {
            while TcpStream::connect(address).is_err() {
                let ended = self.nginx.try_wait().context("cannot ask for nginx's status")?;
                if ended.is_some() || Instant::now() > deadline {
                    let log = fs::read_to_string(&self.log).unwrap_or_default();
                    bail!("nginx does not listen on {address}; it said: {}", log.trim());
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // Both fail only for a process that has ended, which is what is wanted. It has no workers to leave.
        let _ = self.nginx.kill();
        let _ = self.nginx.wait();
    }
}

/// Two addresses on which nobody listens. Another process could take one before nginx does; nginx then says so.
fn free_addresses() -> Result<(SocketAddr, SocketAddr)> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port");
    let (one, other) = (bind()?, bind()?);
    let address = |listener: &TcpListener| listener.local_addr().context("a listener without an address");
    Ok((address(&one)?, address(&other)?))
}

/// One process without a master, so that the child we started is all there is. Connections are kept for as long
/// as the client likes: what is measured is requests, not connects.
fn configuration(place: &Place, healthy: SocketAddr, failing: SocketAddr) -> String {
    let output = place.output.display();
    format!(
        "# Written by the benchmark.\n\
         daemon off;\nmaster_process off;\nworker_processes 1;\n\
         pid {output}/nginx.pid;\nerror_log stderr error;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n    access_log off;\n    keepalive_requests 1000000000;\n    keepalive_timeout 1h;\n    \
         server {{ listen {healthy}; location / {{ return 200 \"ok\"; }} }}\n    \
         server {{ listen {failing}; location / {{ return 503; }} }}\n}}\n"
    )
}
