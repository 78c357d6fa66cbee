//! `/metrics`, `/healthz`, `/readyz`.
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus::TEXT_FORMAT;
use retry_common::judge::HEARTBEAT_MS;
use tokio::net::TcpListener;

use super::Collector;
use crate::session::Session;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve metrics on {address}: {source}")]
pub struct MetricsError {
    address: SocketAddr,
    source: io::Error,
}

/// The listening server; it says "not ready" until it is given a session.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
}

#[derive(Default)]
struct Shared {
    served: OnceLock<(Arc<Session>, Mutex<Collector>)>,
}

impl Server {
    /// Listens and answers from now on.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub async fn start(address: SocketAddr) -> Result<Self, MetricsError> {
        let failed = |source| MetricsError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::<Shared>::default();
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .with_state(Arc::clone(&shared));
        // Ends with the runtime.
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { shared, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is served from now on; a second session is not taken.
    pub fn show(&self, session: Arc<Session>) {
        let collector = Collector::new(session.settings().limits.series as usize);
        // Set once by its only caller.
        let _ = self.shared.served.set((session, Mutex::new(collector)));
    }
}

const NOT_READY: (StatusCode, &str) =
    (StatusCode::SERVICE_UNAVAILABLE, "the kernel side is not attached yet\n");

async fn metrics(State(shared): State<Arc<Shared>>) -> axum::response::Response {
    if shared.served.get().is_none() {
        return NOT_READY.into_response();
    }
    // Thousands of system calls: not for the thread that gives signs of life.
    let text = tokio::task::spawn_blocking(move || text(&shared)).await;
    match text.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error + "\n").into_response(),
    }
}

fn text(shared: &Shared) -> Result<String, String> {
    let Some((session, collector)) = shared.served.get() else { return Err(NOT_READY.1.to_owned()) };
    let snapshot = session.snapshot().map_err(|error| error.to_string())?;
    let mut collector = collector.lock().unwrap_or_else(PoisonError::into_inner);
    collector.text(snapshot).map_err(|error| error.to_string())
}

async fn healthz(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    match shared.served.get() {
        Some((session, _)) if session.beat_age_ms() > HEARTBEAT_MS => {
            (StatusCode::SERVICE_UNAVAILABLE, "no sign of life reaches the kernel side\n")
        }
        _ => (StatusCode::OK, "ok\n"),
    }
}

async fn readyz(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    if shared.served.get().is_some() { (StatusCode::OK, "ready\n") } else { NOT_READY }
}
