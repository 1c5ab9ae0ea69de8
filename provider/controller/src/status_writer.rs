//! The only writer of a pool's status. It uses optimistic concurrency, and writes nothing if
//! nothing changed.
//!
//! It writes to a [`PoolStore`]: the API server, or a simulated one.

use api::pool::{SpotPool, SpotPoolObservation, SpotPoolStatus};
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Api;
use provider_core::Observed;
use provider_runtime::conditions::Verdict;
use provider_runtime::{finalizer, status};

use crate::account::Place;
use crate::act::WriteAhead;
use crate::numbers::signed;
use crate::seals::Identity;
use crate::{convert, home};

/// The place where pools are stored. Every write names the version that it was made from, and is
/// refused if there is a newer one.
#[async_trait]
pub(crate) trait PoolStore: Send + Sync {
    /// Writes a pool's status, and returns the pool after that.
    async fn write_status(
        &self,
        pool: &SpotPool,
        status: &SpotPoolStatus,
    ) -> Result<SpotPool, kube::Error>;

    /// Releases a deleted pool.
    async fn release(&self, meta: &ObjectMeta) -> Result<(), kube::Error>;
}

#[async_trait]
impl PoolStore for Api<SpotPool> {
    async fn write_status(
        &self,
        pool: &SpotPool,
        status: &SpotPoolStatus,
    ) -> Result<SpotPool, kube::Error> {
        status::write(self, &pool.metadata, pool.status.as_ref(), status).await
    }

    async fn release(&self, meta: &ObjectMeta) -> Result<(), kube::Error> {
        finalizer::remove(self, meta, finalizer::MANAGED)
            .await
            .map(|_| ())
    }
}

/// A pool's status while a reconcile builds it.
///
/// Every write names the version that it was made from. So the API server refuses a reconcile that
/// began with a stale copy, or a second provider during an upgrade, before it can launch what
/// another one has launched.
pub(crate) struct StatusWriter<S> {
    store: S,
    pool: SpotPool,
    before: SpotPoolStatus,
    after: SpotPoolStatus,
    now: Timestamp,
}

impl<S: PoolStore> StatusWriter<S> {
    pub(crate) fn new(store: S, pool: &SpotPool, now: Timestamp) -> Self {
        let status = pool.status.clone().unwrap_or_default();
        Self {
            store,
            pool: pool.clone(),
            before: status.clone(),
            after: status,
            now,
        }
    }

    /// Continues with a newer version of the same object.
    pub(crate) fn rebase(&mut self, pool: SpotPool) {
        self.pool = pool;
    }

    /// The status that this reconcile began with.
    pub(crate) fn before(&self) -> &SpotPoolStatus {
        &self.before
    }

    /// The status as it will be written.
    pub(crate) fn after(&self) -> &SpotPoolStatus {
        &self.after
    }

    /// Sets conditions.
    pub(crate) fn conclude(&mut self, verdicts: impl IntoIterator<Item = Verdict>) {
        let generation = self.pool.metadata.generation;
        crate::status::conclude(&mut self.after, verdicts, generation, self.now);
    }

    /// Notes that a request to reconcile was handled.
    pub(crate) fn followed(&mut self, request: &str) {
        self.after.last_handled_reconcile_at = Some(request.to_owned());
    }

    /// Sets the account and the identities of the pool's resources. Every later write has them.
    pub(crate) fn place(&mut self, place: Place<'_>, pool: &Identity) {
        let shown = &mut self.after.at_provider;
        shown.pool_identity = Some(pool.sealed.clone());
        shown.account = Some(place.account.to_owned());
        shown.identity = Some(place.identity.to_owned());
    }

    /// Sets the observed state.
    pub(crate) fn observe(&mut self, observation: SpotPoolObservation) {
        let shown = &mut self.after.at_provider;
        *shown = SpotPoolObservation {
            account: shown.account.take(),
            identity: shown.identity.take(),
            pool_identity: shown.pool_identity.take(),
            ..observation
        };
    }

    /// Writes the status, if it differs from the one that is stored.
    pub(crate) async fn write(&mut self) -> Result<(), kube::Error> {
        if self.pool.status.as_ref() == Some(&self.after) {
            return Ok(());
        }
        self.write_anyway().await
    }

    async fn write_anyway(&mut self) -> Result<(), kube::Error> {
        self.pool = self.store.write_status(&self.pool, &self.after).await?;
        Ok(())
    }

    /// Releases the pool.
    pub(crate) async fn release(&self) -> Result<(), kube::Error> {
        self.store.release(&self.pool.metadata).await
    }
}

#[async_trait]
impl<S: PoolStore> WriteAhead for StatusWriter<S> {
    async fn persist(&mut self, observed: &Observed) -> Result<(), kube::Error> {
        let shown = &mut self.after.at_provider;
        // A launch is removed from the status when its instances are listed. From then on the
        // status must show the instances, in case the next list leaves one out.
        for instance in observed.instances.iter().filter(|i| i.state.is_live()) {
            if shown.instances.iter().all(|i| i.id != instance.id) {
                shown.instances.push(convert::instance_to_api(instance));
            }
        }
        shown.launches = observed
            .launches
            .iter()
            .map(convert::launch_to_api)
            .collect();
        shown.launch_generation = signed(observed.launch_generation);
        shown.launch_templates = observed.templates.iter().cloned().collect();
        shown.leases.clone_from(&observed.bindings);
        shown.ending.clone_from(&observed.ending);
        if !observed.home.is_unseen {
            shown.home = home::to_api(&observed.home);
        }
        self.write_anyway().await
    }
}
