//! The broker: the one process of a pod that has the right to ask the API server.
//!
//! It serves sshd's programs over a Unix socket. Its user id is another one than sshd's, so no session can
//! look into it. A session shows its grant first, and is its person from then on.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bastion_core::accounts::Accounts;
use bastion_core::audit::{Entry, Event};
use bastion_core::grants::Grants;
use bastion_core::processes::Process;
use bastion_core::target::InstanceAddress;
use clap::{Args, ValueEnum};
use kube::Client;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tracing::{error, info};

use crate::channel::socket;
use crate::log::{Log, Retention};
use metrics::Metrics;

mod api;
mod directory;
mod host_key;
mod limits;
mod metrics;
mod processes;
mod sessions;
mod stream;

/// The settings of the broker.
#[derive(Args)]
pub(crate) struct Settings {
    /// Folder of the socket, the accounts and the host key
    #[arg(long, default_value = "/run/gpu-bastion")]
    run: PathBuf,
    /// Folder of the accounts, which the system's name service reads
    #[arg(long, default_value = "/var/lib/extrausers")]
    accounts: PathBuf,
    /// Folder of the audit log
    #[arg(long, default_value = "/var/lib/gpu-bastion/audit")]
    audit: PathBuf,
    /// Name of this replica
    #[arg(long, env = "POD_NAME")]
    replica: String,
    /// Namespace of the bastion
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: String,
    /// Secret with the host key that all replicas have
    #[arg(long, default_value = "gpu-bastion-host-key")]
    host_key: String,
    /// Address of metrics and probes
    #[arg(long, default_value = "0.0.0.0:8080")]
    metrics: SocketAddr,
    /// Which address of EC2 instances the bastion reaches
    #[arg(long, value_enum, default_value_t)]
    instance_address: Address,
    #[command(flatten)]
    retention: Retention,
    /// User id of sshd, which all accounts have; it is another one than the broker's
    #[arg(long, default_value_t = 10_022)]
    sshd_uid: u32,
}

/// An address of an EC2 instance.
#[derive(ValueEnum, Clone, Copy, Default)]
enum Address {
    /// The address in the VPC
    #[default]
    Private,
    /// The public address
    Public,
}

impl From<Address> for InstanceAddress {
    fn from(address: Address) -> Self {
        match address {
            Address::Private => Self::Private,
            Address::Public => Self::Public,
        }
    }
}

/// What all connections share.
struct Broker {
    accounts: watch::Receiver<Arc<Accounts>>,
    grants: Mutex<Grants>,
    limits: limits::Limits,
    metrics: Arc<Metrics>,
    /// The process of sshd that listens.
    listener: Mutex<Option<Process>>,
    log: Log,
    instance_address: InstanceAddress,
    client: Client,
    replica: String,
    began: Instant,
}

impl Broker {
    /// Writes an event to the audit log, and returns when it is on disk.
    async fn record(&self, session: Option<(&str, &str)>, event: Event) -> io::Result<()> {
        let (session, user) = session.unzip();
        let entry = Entry {
            replica: self.replica.clone(),
            session: session.map(str::to_owned),
            user: user.map(str::to_owned),
            event,
        };
        let began = Instant::now();
        let written = self.log.write(entry).await;
        self.metrics.audit(began, written.is_ok());
        written
    }

    fn grants(&self) -> std::sync::MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the broker until it is told to end.
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
    host_key::prepare(&client, settings).await?;
    let accounts = directory::follow(&client, settings).await?;
    let metrics = Arc::new(Metrics::new());
    let port = TcpListener::bind(settings.metrics).await?;
    tokio::spawn(metrics::serve(port, Arc::clone(&metrics)));
    let listener = listen(&settings.run)?;
    let broker = Arc::new(Broker {
        accounts,
        grants: Mutex::default(),
        limits: limits::Limits::default(),
        metrics: Arc::clone(&metrics),
        listener: Mutex::default(),
        log,
        instance_address: settings.instance_address.into(),
        client,
        replica: settings.replica.clone(),
        began: Instant::now(),
    });
    info!("ready");
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                tokio::spawn(sessions::serve(Arc::clone(&broker), stream));
            }
            _ = terminated.recv() => return Ok(()),
        }
    }
}

/// Listens where only sshd's group may connect.
fn listen(run: &Path) -> io::Result<UnixListener> {
    let path = socket(run);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let unready = run.join(".broker.sock");
    match fs::remove_file(&unready) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&unready)?;
    fs::set_permissions(&unready, fs::Permissions::from_mode(0o660))?;
    fs::rename(&unready, &path)?;
    Ok(listener)
}
