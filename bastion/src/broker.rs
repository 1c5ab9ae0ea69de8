//! The broker: the one process of a pod that has the right to ask the API server.
//!
//! It serves sshd's programs over a Unix socket. Its user id is another one than sshd's, so no session can
//! look into it. A session shows its grant first, and is its person from then on.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bastion_core::names::SERVICE;
use kube::Client;
use tokio::net::{TcpListener, UnixListener};
use tracing::{error, info};

use crate::channel;
use crate::log::Log;
use files::removed;
use metrics::Metrics;
pub(crate) use settings::Settings;
use shared::Broker;

mod accepting;
mod agent;
mod api;
mod directory;
mod files;
mod host_key;
mod keys;
mod leaving;
mod limits;
mod metrics;
mod names;
mod processes;
mod random;
mod sessions;
mod settings;
mod shared;
mod stream;
mod workspaces;

/// Runs the broker until the kubelet ends it.
pub(crate) fn run(settings: &Settings) -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info")),
        )
        .init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            error!(%error, "cannot start");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve(settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(%error, "the broker ends");
            ExitCode::FAILURE
        }
    }
}

async fn serve(settings: &Settings) -> Result<(), Box<dyn std::error::Error>> {
    let log = Log::open(&settings.audit, &settings.replica, settings.retention)?;
    let client = Client::try_default().await?;
    let keys = keys::Keys::new(&client, settings);
    let host_key = keys.host_key(settings).await?;
    let authority = keys.authority(settings).await?;
    let accounts = directory::follow(&client).await?;
    let metrics = Arc::new(Metrics::new());
    let port = TcpListener::bind(settings.metrics).await?;
    tokio::spawn(metrics::serve(port, Arc::clone(&metrics)));
    let listener = listen(&channel::socket(&settings.run))?;
    let for_names = listen(&settings.names.join(SERVICE))?;
    tokio::spawn(names::serve(for_names, settings.sshd_uid));
    let for_host_key = listen(&settings.run.join("host-key.sock"))?;
    let for_ssh = listen(&channel::agent(&settings.run))?;
    let broker = Arc::new(Broker {
        accounts,
        grants: Mutex::default(),
        limits: limits::Limits::default(),
        leaving: leaving::Leaving::new(),
        metrics: Arc::clone(&metrics),
        listener: Mutex::new(processes::remembered(&settings.audit)?),
        folder: settings.audit.clone(),
        log,
        instance_address: settings.instance_address.into(),
        client,
        replica: settings.replica.clone(),
        began: Instant::now(),
    });
    let agent = Arc::new(agent::Agent::new(authority.as_deref())?);
    tokio::spawn(host_key::serve(Arc::clone(&broker), host_key, for_host_key));
    tokio::spawn(agent::serve(Arc::clone(&agent), for_ssh));
    tokio::spawn(Arc::clone(&broker).try_the_log_again());
    info!("ready");
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                tokio::spawn(sessions::serve(Arc::clone(&broker), Arc::clone(&agent), stream));
            }
            _ = terminated.recv() => return Ok(()),
        }
    }
}

/// Listens where only sshd's group may connect.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let unready = path.with_extension("unready");
    removed(path)?;
    removed(&unready)?;
    let listener = UnixListener::bind(&unready)?;
    fs::set_permissions(&unready, fs::Permissions::from_mode(0o660))?;
    fs::rename(&unready, path)?;
    Ok(listener)
}
