//! Ends orphans: instances and groups of this control plane whose pool is gone without having
//! cleaned up, because its finalizer was removed.
//!
//! The sweeper never deletes a home volume: it holds a user's work, and only its pool could decide
//! about it.
//!
//! It sweeps only where pools are: every region with every set of credentials that some pool uses.

use std::collections::{BTreeMap, BTreeSet};

use api::lease::SpotLease;
use api::pool::SpotPool;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use kube::{Client, Resource};
use provider_aws::Ec2Error;
use provider_core::{Group, Instance, InstanceState};
use provider_runtime::events::{Events, Happened};
use provider_runtime::lists::Pages;
use serde::de::DeserializeOwned;

use crate::identity;
use crate::region::{Region, Snapshot};
use crate::seals::{Identified, Identity, Seals, is_annotated};

/// If there are more orphans than this, and they are most of the live instances, a person made a
/// mistake: nothing is ended then.
const FEW: usize = 4;

/// Why nothing was swept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The pools and leases are unknown.
    #[error("cannot list pools and leases: {0}")]
    Owners(#[from] kube::Error),
    /// EC2 refused.
    #[error(transparent)]
    Ec2(#[from] Ec2Error),
    /// Most of the live instances have no pool.
    #[error(
        "{0} instances, most of the region's, belong to pools that do not exist: restore the \
         pools, or terminate the instances by hand"
    )]
    TooMany(usize),
}

/// The pools and leases that may own resources in EC2.
#[async_trait]
pub trait Owners: Send + Sync {
    /// The identities of every pool, from the API server.
    async fn pools(&self) -> Result<BTreeSet<String>, kube::Error>;

    /// The identities of every lease, from the API server.
    async fn leases(&self) -> Result<BTreeSet<String>, kube::Error>;

    /// The identities of the deleted pools whose instances stay, because their management policies had no
    /// `Delete`.
    async fn kept(&self) -> Result<BTreeSet<String>, kube::Error>;

    /// Records that the instances of a pool that is about to go stay. `name` is for people.
    async fn keep(&self, pool: &str, name: &str) -> Result<(), kube::Error>;

    /// Publishes events about ended resources.
    async fn tell(&self, happened: &[Happened]);
}

/// The pools and leases of the API server.
pub struct LiveOwners {
    /// The client of the API server.
    pub client: Client,
    /// The writer of events.
    pub events: Events,
    /// The provider's namespace.
    pub namespace: String,
    /// Tells the identities of pools and leases.
    pub seals: Seals,
    /// The control plane's identity. The events are about it, because the pools are gone.
    pub identity: ConfigMap,
}

#[async_trait]
impl Owners for LiveOwners {
    async fn pools(&self) -> Result<BTreeSet<String>, kube::Error> {
        self.identities::<SpotPool>().await
    }

    async fn leases(&self) -> Result<BTreeSet<String>, kube::Error> {
        match self.identities::<SpotLease>().await {
            // The kind is inactive, so there are no objects of it.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(BTreeSet::new()),
            listed => listed,
        }
    }

    async fn kept(&self) -> Result<BTreeSet<String>, kube::Error> {
        identity::kept(&self.client, &self.namespace).await
    }

    async fn keep(&self, pool: &str, name: &str) -> Result<(), kube::Error> {
        identity::keep(&self.client, &self.namespace, pool, name).await
    }

    async fn tell(&self, happened: &[Happened]) {
        let now = Timestamp::now();
        self.events.publish(&self.identity, happened, now).await;
    }
}

impl LiveOwners {
    /// The identities of all objects of a kind. An object with an unproven identity owns what has
    /// its UID.
    ///
    /// Identities are read from the metadata, page by page: the pools of a large control plane do not
    /// fit into the memory. Only an object without the annotation is read as a whole. A tool may have
    /// removed the annotation, and the provider does not write it to a paused pool.
    async fn identities<K>(&self) -> Result<BTreeSet<String>, kube::Error>
    where
        K: Identified + Resource<Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let mut identities = BTreeSet::new();
        let mut pages = Pages::of(ListParams::default());
        while let Some(params) = pages.next() {
            let page = api.list_metadata(params).await?;
            pages.read(page.metadata);
            for one in page.items {
                let identity = if is_annotated(&one.metadata) {
                    self.seals.of_metadata::<K>(&one.metadata).ok()
                } else {
                    self.recorded::<K>(&one.metadata).await?
                };
                identities.extend(identity.map(|identity| identity.value));
                identities.extend(one.metadata.uid);
            }
        }
        Ok(identities)
    }

    /// The identity that the status of an object says.
    async fn recorded<K>(&self, meta: &ObjectMeta) -> Result<Option<Identity>, kube::Error>
    where
        K: Identified + Resource<Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let name = meta.name.as_deref().unwrap_or_default();
        let api: Api<DeserializeGuard<K>> = Api::namespaced(self.client.clone(), namespace);
        let found = api.get_opt(name).await?;
        // An object that cannot be read owns what has its UID.
        let object = found.and_then(|DeserializeGuard(read)| read.ok());
        Ok(object.and_then(|object| self.seals.of(&object).ok()))
    }
}

#[cfg(test)]
impl LiveOwners {
    /// The pools and leases of a server.
    pub fn for_tests(server: &memory_api_server::ApiServer) -> Self {
        use provider_runtime::metrics::{Metrics, happened::EventCounts};
        let counts = EventCounts::new(&Metrics::new(), "events", "Events");
        Self {
            client: server.client(),
            events: Events::new(server.client(), "test", counts),
            namespace: "crossplane-system".into(),
            seals: crate::seals::SEALS.clone(),
            identity: ConfigMap::default(),
        }
    }
}

/// Sweeps one region.
pub struct Sweeper<'a> {
    /// Lists the pools and leases that may own resources.
    owners: &'a dyn Owners,
    /// How long a pool must have been missing. It is also the time between two lists of pools.
    grace: SignedDuration,
    looked_at: Option<Timestamp>,
    /// Since when pools that have resources here do not exist.
    missing: BTreeMap<String, Timestamp>,
}

impl<'a> Sweeper<'a> {
    /// A sweeper that has seen nothing yet.
    pub fn new(owners: &'a dyn Owners, grace: SignedDuration) -> Self {
        Self {
            owners,
            grace,
            looked_at: None,
            missing: BTreeMap::new(),
        }
    }

    /// Ends resources whose pool has been missing for long enough. It lists the pools from the API
    /// server once per grace period, because a cached list may be out of date.
    pub async fn sweep(&mut self, region: &Region, seen: &Snapshot) -> Result<(), SweepError> {
        let is_early = |at: Timestamp| seen.at.duration_since(at) < self.grace;
        if self.looked_at.is_some_and(is_early) {
            return Ok(());
        }
        self.looked_at = Some(seen.at);
        let mut pools = self.owners.pools().await?;
        pools.extend(self.owners.kept().await?);
        let orphans = self.orphans(seen, &pools);
        if orphans.is_empty() {
            return Ok(());
        }
        let instances = self.unowned(seen, &orphans).await?;
        let live = seen.instances.values().flatten();
        let live = live.filter(|i| i.state.is_live()).count();
        if instances.len() > FEW && instances.len() * 2 > live {
            let kept = SweepError::TooMany(instances.len());
            let happened = Happened::warning("OrphansKept", kept.to_string());
            self.owners.tell(&[happened]).await;
            return Err(kept);
        }
        self.terminate(region, &instances, &orphans).await?;
        self.delete_groups(region, seen, &orphans).await
    }

    /// The pools that have resources here and have been missing for too long.
    fn orphans(&mut self, seen: &Snapshot, pools: &BTreeSet<String>) -> Vec<String> {
        let live = seen.instances.iter();
        let live = live.filter(|(_, of_pool)| of_pool.iter().any(|i| i.state.is_live()));
        let found = live.map(|(uid, _)| uid).chain(seen.groups.keys());
        let missing: BTreeSet<&String> = found.filter(|uid| !pools.contains(*uid)).collect();
        self.missing.retain(|uid, _| missing.contains(uid));
        for uid in missing {
            self.missing.entry(uid.clone()).or_insert(seen.at);
        }
        let is_due = |since: &Timestamp| seen.at.duration_since(*since) >= self.grace;
        let due = self.missing.iter().filter(|(_, since)| is_due(since));
        due.map(|(uid, _)| uid.clone()).collect()
    }

    /// The live instances of these pools that no lease has.
    async fn unowned(
        &self,
        seen: &Snapshot,
        orphans: &[String],
    ) -> Result<Vec<String>, SweepError> {
        let of_orphans = orphans.iter().filter_map(|uid| seen.instances.get(uid));
        let live = of_orphans.flatten().filter(|i| i.state.is_live());
        let live: Vec<&Instance> = live.map(AsRef::as_ref).collect();
        let leases = if live.iter().any(|i| i.lease.is_some()) {
            self.owners.leases().await?
        } else {
            BTreeSet::new()
        };
        let is_leased = |i: &Instance| i.lease.as_ref().is_some_and(|uid| leases.contains(uid));
        let unowned = live.into_iter().filter(|i| !is_leased(i));
        Ok(unowned.map(|i| i.id.clone()).collect())
    }

    /// Terminates those that a fresh describe shows as live, as everywhere.
    async fn terminate(
        &self,
        region: &Region,
        ids: &[String],
        orphans: &[String],
    ) -> Result<(), SweepError> {
        if ids.is_empty() {
            return Ok(());
        }
        // What EC2 does not tell now ends at a later sweep.
        let mut still = region.describe(ids).await?.found;
        still.retain(|i| i.state.is_live() && orphans.contains(&i.pool_uid));
        if still.is_empty() {
            return Ok(());
        }
        let refused = region.ec2.terminate(&still).await;
        let ended = still.iter().filter(|i| !refused.contains_key(&i.id));
        let happened = ended.map(|i| {
            tracing::warn!(id = i.id, pool = i.pool_uid, "terminated an orphan");
            let text = format!(
                "terminated {} ({}): its SpotPool with UID {} does not exist",
                i.id, i.offering, i.pool_uid
            );
            Happened::warning("OrphanTerminated", text)
        });
        let kept = refused.iter().map(|(id, error)| {
            let text = format!("cannot terminate {id}, which has no SpotPool: {error}");
            tracing::error!("{text}");
            Happened::warning("OrphansKept", text)
        });
        self.owners
            .tell(&happened.chain(kept).collect::<Vec<_>>())
            .await;
        Ok(())
    }

    /// Deletes groups that have no instance any more. A group that cannot be deleted keeps no other
    /// one.
    async fn delete_groups(
        &self,
        region: &Region,
        seen: &Snapshot,
        orphans: &[String],
    ) -> Result<(), SweepError> {
        let mut refused = None;
        for group in empty_groups(seen, orphans) {
            if let Err(error) = region.ec2.delete_group(&group.id).await {
                refused.get_or_insert(error);
                continue;
            }
            let text = format!(
                "deleted security group {}: its SpotPool with UID {} does not exist",
                group.id, group.pool_uid
            );
            tracing::warn!("{text}");
            let happened = Happened::normal("OrphanDeleted", text);
            self.owners.tell(&[happened]).await;
        }
        refused.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// The groups of these pools that have no instance any more.
fn empty_groups<'a>(seen: &'a Snapshot, orphans: &[String]) -> Vec<&'a Group> {
    let is_over = |i: &Instance| i.state == InstanceState::Terminated;
    let is_empty = |uid: &&String| {
        let of_pool = seen.instances.get(*uid).into_iter().flatten();
        of_pool.into_iter().all(|i| is_over(i))
    };
    let empty = orphans.iter().filter(is_empty);
    let groups = empty.filter_map(|uid| seen.groups.get(uid));
    groups.flatten().collect()
}

#[cfg(test)]
#[path = "sweeper_tests.rs"]
mod tests;
