//! `run`: the daemon for a subtree of cgroups.
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::BAD_CONFIG;
use crate::cgroup;
use crate::config::Settings;
use crate::kernel::check_privileges;
use crate::metrics::Server;
use crate::session::Session;
use crate::spec::millis;

pub(super) fn run(config: Option<&Path>) -> Result<ExitCode> {
    let settings = match config.map(Settings::read).transpose() {
        Ok(settings) => settings.unwrap_or_default(),
        Err(error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(BAD_CONFIG));
        }
    };
    check_privileges()?;
    super::start_log("info");
    super::block_on(serve(settings))
}

async fn serve(settings: Settings) -> Result<ExitCode> {
    let listen = |kind| signal(kind).context("cannot listen to signals");
    let mut ends = [listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?];
    let mut hangup = listen(SignalKind::hangup())?;
    let server = Server::start(settings.metrics).await?;
    let mount = cgroup::mount()?;
    let root = mount.join(&settings.cgroup);
    let session = Session::start(settings, &root, below(&mount, &root))?;
    describe(&session, &root, &server);
    server.show(session.clone());
    tokio::select! {
        result = session.follow() => result?,
        () = any(&mut ends) => info!("asked to stop: detaching"),
        () = ignore(&mut hangup) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of the watched subtree, empty for the whole tree.
fn below<'a>(mount: &Path, root: &'a Path) -> &'a str {
    root.strip_prefix(mount).ok().and_then(Path::to_str).unwrap_or_default()
}

fn describe(session: &Session, root: &Path, server: &Server) {
    let settings = session.settings();
    let default = &settings.default;
    info!(cgroup = %root.display(), metrics = %server.address(), window_ms = millis(settings.window),
        mode = default.mode.label(), budget = %default.budget, rules = settings.rules.len(), "attached");
    for rule in &settings.rules {
        let treatment = &rule.treatment;
        info!(rule = rule.name, mode = treatment.mode.label(), budget = %treatment.budget,
            act_on = treatment.act_on.label(), "rule");
    }
}

async fn any(signals: &mut [Signal]) {
    std::future::poll_fn(|context| {
        if signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

/// A daemon does not end with the terminal it was started from.
async fn ignore(hangup: &mut Signal) {
    while hangup.recv().await.is_some() {
        warn!("SIGHUP: the configuration is read at the start only; restart to change it");
    }
    std::future::pending().await
}
