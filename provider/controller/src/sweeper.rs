//! Ends what no pool accounts for: instances and groups of this control plane whose
//! pool went without its finalizer.
//!
//! A home volume is never ended here, whoever it belonged to: there is work in it, and
//! what becomes of it was for its pool to say.
//!
//! It looks where pools are: in every region, by every identity, that some pool uses.

use std::collections::{BTreeMap, BTreeSet};

use api::lease::SpotLease;
use api::pool::SpotPool;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use provider_aws::Ec2Error;
use provider_core::{Group, Instance, InstanceState};
use provider_runtime::events::{Events, Happened};
use serde::de::DeserializeOwned;

use crate::region::{Region, Snapshot};

/// More than so many orphans, if they are most of what lives, are a mistake of
/// somebody: nothing is ended then.
const FEW: usize = 4;

/// Why nothing was swept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Nobody can tell which pools exist.
    #[error("cannot list pools and leases: {0}")]
    Owners(#[from] kube::Error),
    /// EC2 refused.
    #[error(transparent)]
    Ec2(#[from] Ec2Error),
    /// Most of what lives has no pool.
    #[error(
        "{0} instances, most of the region's, belong to pools that do not exist: restore the \
         pools, or terminate the instances by hand"
    )]
    TooMany(usize),
}

/// Who may own what EC2 has.
#[async_trait]
pub trait Owners: Send + Sync {
    /// The UIDs of every pool, as of now.
    async fn pools(&self) -> Result<BTreeSet<String>, kube::Error>;

    /// The UIDs of every lease, as of now.
    async fn leases(&self) -> Result<BTreeSet<String>, kube::Error>;

    /// Tells people what was ended.
    async fn tell(&self, happened: &[Happened]);
}

/// The API server's.
pub struct LiveOwners {
    /// The API server.
    pub client: Client,
    /// Events.
    pub events: Events,
    /// The control plane's identity, of which events are told: the pools are gone.
    pub identity: ConfigMap,
}

#[async_trait]
impl Owners for LiveOwners {
    async fn pools(&self) -> Result<BTreeSet<String>, kube::Error> {
        uids::<SpotPool>(&self.client).await
    }

    async fn leases(&self) -> Result<BTreeSet<String>, kube::Error> {
        match uids::<SpotLease>(&self.client).await {
            // The kind is inactive: there are none.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(BTreeSet::new()),
            listed => listed,
        }
    }

    async fn tell(&self, happened: &[Happened]) {
        let now = Timestamp::now();
        self.events.publish(&self.identity, happened, now).await;
    }
}

async fn uids<K>(client: &Client) -> Result<BTreeSet<String>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let listed = api.list_metadata(&ListParams::default()).await?;
    Ok(listed
        .into_iter()
        .filter_map(|one| one.metadata.uid)
        .collect())
}

/// Sweeps one region.
pub struct Sweeper<'a> {
    /// Who may own what is there.
    owners: &'a dyn Owners,
    /// How long something has to be nobody's; between two looks at who exists, too.
    grace: SignedDuration,
    looked_at: Option<Timestamp>,
    /// Since when pools that have something there do not exist.
    missing: BTreeMap<String, Timestamp>,
}

impl<'a> Sweeper<'a> {
    /// Has seen nothing yet.
    pub fn new(owners: &'a dyn Owners, grace: SignedDuration) -> Self {
        Self {
            owners,
            grace,
            looked_at: None,
            missing: BTreeMap::new(),
        }
    }

    /// Ends what has been nobody's for long enough. The pools are listed for it, once
    /// per grace: whatever was known of one that vanished may be out of date.
    pub async fn sweep(&mut self, region: &Region, seen: &Snapshot) -> Result<(), SweepError> {
        let is_early = |at: Timestamp| seen.at.duration_since(at) < self.grace;
        if self.looked_at.is_some_and(is_early) {
            return Ok(());
        }
        self.looked_at = Some(seen.at);
        let pools = self.owners.pools().await?;
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

    /// The pools that have something there and have not existed for too long.
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

    /// As everywhere, by a fresh describe.
    async fn terminate(
        &self,
        region: &Region,
        ids: &[String],
        orphans: &[String],
    ) -> Result<(), SweepError> {
        if ids.is_empty() {
            return Ok(());
        }
        let fresh = region.ec2.instances_by_id(ids).await?;
        let still = fresh
            .iter()
            .filter(|i| i.state.is_live() && orphans.contains(&i.pool_uid));
        let still: Vec<&Instance> = still.collect();
        if still.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = still.iter().map(|i| i.id.clone()).collect();
        region.ec2.terminate(&ids).await?;
        let happened = still.iter().map(|i| {
            tracing::warn!(id = i.id, pool = i.pool_uid, "terminated an orphan");
            let text = format!(
                "terminated {} ({}): its SpotPool with UID {} does not exist",
                i.id, i.offering, i.pool_uid
            );
            Happened::warning("OrphanTerminated", text)
        });
        self.owners.tell(&happened.collect::<Vec<_>>()).await;
        Ok(())
    }

    /// A group goes after the last instance in it.
    async fn delete_groups(
        &self,
        region: &Region,
        seen: &Snapshot,
        orphans: &[String],
    ) -> Result<(), SweepError> {
        for group in empty_groups(seen, orphans) {
            region.ec2.delete_group(&group.id).await?;
            let text = format!(
                "deleted security group {}: its SpotPool with UID {} does not exist",
                group.id, group.pool_uid
            );
            tracing::warn!("{text}");
            let happened = Happened::normal("OrphanDeleted", text);
            self.owners.tell(&[happened]).await;
        }
        Ok(())
    }
}

/// The groups of these pools in which nothing is any more.
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
