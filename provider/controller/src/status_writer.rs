//! The sole writer of a pool's status: optimistic, and silent when nothing
//! changed.

use api::pool::{SpotPool, SpotPoolObservation, SpotPoolStatus};
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use provider_core::Observed;
use provider_runtime::conditions::Verdict;

use crate::act::WriteAhead;
use crate::{convert, status};

/// A pool's status in the making.
///
/// Every write names the version that it was made from: a reconcile that began
/// with a stale copy, or a second provider during an upgrade, is refused before
/// it can launch what another one has launched.
pub(crate) struct StatusWriter {
    pub(crate) api: Api<SpotPool>,
    pool: SpotPool,
    before: SpotPoolStatus,
    after: SpotPoolStatus,
    now: Timestamp,
}

impl StatusWriter {
    pub(crate) fn new(api: Api<SpotPool>, pool: &SpotPool, now: Timestamp) -> Self {
        let status = pool.status.clone().unwrap_or_default();
        Self {
            api,
            pool: pool.clone(),
            before: status.clone(),
            after: status,
            now,
        }
    }

    /// Goes on from a newer version of the same object.
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

    /// The object's metadata, as last read or written.
    pub(crate) fn meta(&self) -> &ObjectMeta {
        &self.pool.metadata
    }

    /// Sets conditions.
    pub(crate) fn conclude(&mut self, verdicts: impl IntoIterator<Item = Verdict>) {
        let generation = self.pool.metadata.generation;
        status::conclude(&mut self.after, verdicts, generation, self.now);
    }

    /// Sets what EC2 shows.
    pub(crate) fn observe(&mut self, observation: SpotPoolObservation) {
        self.after.at_provider = observation;
    }

    /// Writes the status, if it differs from the one that is stored.
    pub(crate) async fn write(&mut self) -> Result<(), kube::Error> {
        if self.pool.status.as_ref() == Some(&self.after) {
            return Ok(());
        }
        let mut pool = self.pool.clone();
        pool.status = Some(self.after.clone());
        let name = pool.name_any();
        self.pool = self
            .api
            .replace_status(&name, &PostParams::default(), &pool)
            .await?;
        Ok(())
    }
}

#[async_trait]
impl WriteAhead for StatusWriter {
    async fn persist(&mut self, observed: &Observed) -> Result<(), kube::Error> {
        let shown = &mut self.after.at_provider;
        shown.launches = observed
            .launches
            .iter()
            .map(convert::launch_to_api)
            .collect();
        shown.launch_generation = convert::signed(observed.launch_generation);
        self.write().await
    }
}
