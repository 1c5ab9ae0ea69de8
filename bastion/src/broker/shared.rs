//! What all connections of a broker share.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bastion_core::accounts::Accounts;
use bastion_core::audit::{Entry, Event};
use bastion_core::grants::Grants;
use bastion_core::processes::Process;
use bastion_core::target::InstanceAddress;
use kube::Client;
use tokio::sync::watch;
use tracing::warn;

use super::leaving::Leaving;
use super::limits::Limits;
use super::metrics::Metrics;
use crate::log::Log;

/// How often a log that could not be written is tried.
pub(super) const TRY_AGAIN: Duration = Duration::from_secs(5);

/// What all connections share.
pub(super) struct Broker {
    pub(super) accounts: watch::Receiver<Arc<Accounts>>,
    pub(super) grants: Mutex<Grants>,
    pub(super) limits: Limits,
    pub(super) leaving: Leaving,
    pub(super) metrics: Arc<Metrics>,
    /// The process of sshd that listens.
    pub(super) listener: Mutex<Option<Process>>,
    /// The broker's own folder.
    pub(super) folder: PathBuf,
    pub(super) log: Log,
    pub(super) instance_address: InstanceAddress,
    pub(super) client: Client,
    pub(super) replica: String,
    pub(super) began: Instant,
}

impl Broker {
    /// Writes an event to the audit log, and returns when it is on disk. No audit, no act: the error is
    /// what people read in the place of an answer.
    pub(super) async fn record(
        &self,
        session: Option<(&str, &str)>,
        event: Event,
    ) -> io::Result<()> {
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
        written.map_err(|error| {
            let why =
                format!("the bastion cannot write its audit log, so it does nothing: {error}");
            io::Error::new(error.kind(), why)
        })
    }

    /// While the audit log cannot be written, tries to write it. The replica is not ready then, and
    /// Kubernetes sends no login to it. So no login would show that the volume has room again.
    pub(super) async fn try_the_log_again(self: Arc<Self>) {
        loop {
            tokio::time::sleep(TRY_AGAIN).await;
            if !self.metrics.is_audit_written()
                && let Err(error) = self.record(None, Event::Writable).await
            {
                warn!(%error, "the audit log cannot be written; nobody is served");
            }
        }
    }

    /// The process of sshd that listens, if there is one.
    pub(super) fn sshd(&self) -> Option<Process> {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
