//! The leases on the earth: their creation, their end, and their release.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::duration::Duration;
use api::lease::{PoolReference, SpotLease, SpotLeaseParameters, SpotLeaseSpec};
use api::managed::ManagementAction;
use api::pool::{END_LEASES, SpotPool};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use memory_ec2::Machine;
use provider_runtime::finalizer;

use super::earth::{Earth, Shared};
use super::ours::{Instances as _, Tagged as _};
use super::store::{Edit, behind};
use crate::leases::{Registry, expires_at};
use crate::regions::TAG_KEYS;
use crate::seals::SEALS;

/// Every version of the list of leases, the newest last.
pub struct Lending {
    pub versions: Vec<Vec<Arc<SpotLease>>>,
    since: Vec<Timestamp>,
    made: usize,
}

impl Default for Lending {
    fn default() -> Self {
        Self {
            versions: vec![Vec::new()],
            since: vec![Timestamp::MIN],
            made: 0,
        }
    }
}

impl Lending {
    /// A world without leases. A user's first lease there gets the number `made + 1`.
    pub fn after(made: usize) -> Self {
        Self {
            made,
            ..Self::default()
        }
    }

    pub fn current(&self) -> &[Arc<SpotLease>] {
        self.versions.last().unwrap()
    }

    /// The version that a cache shows if it is `versions` behind, but by `limit` at most.
    pub fn behind(&self, versions: usize, limit: SignedDuration, now: Timestamp) -> usize {
        behind(&self.since, versions, limit, now)
    }

    /// A user creates a lease of the pool that ends after `lifetime` seconds. Returns the lease's UID.
    pub fn ask(&mut self, pool: &SpotPool, lifetime: Option<u16>, now: Timestamp) -> String {
        self.made += 1;
        let name = format!("lease-{}", self.made);
        let spec = SpotLeaseSpec {
            management_policies: vec![ManagementAction::All],
            write_connection_secret_to_ref: None,
            for_provider: SpotLeaseParameters {
                pool_ref: PoolReference {
                    name: pool.metadata.name.clone().unwrap(),
                },
                owner: "alice".into(),
                authorized_keys: vec!["ssh-ed25519 AAAA".into()],
                lifetime: lifetime.map(Duration::of_seconds),
            },
        };
        let mut lease = SpotLease::new(&name, spec);
        lease
            .metadata
            .namespace
            .clone_from(&pool.metadata.namespace);
        lease.metadata.uid = Some(format!("uid-of-{name}"));
        let created = Timestamp::from_second(now.as_second()).unwrap();
        lease.metadata.creation_timestamp = Some(Time(created));
        lease.metadata.finalizers = Some(vec![finalizer::MANAGED.into()]);
        self.change(now, |leases| leases.push(Arc::new(lease)));
        format!("uid-of-{name}")
    }

    /// Somebody deletes a lease.
    pub fn end(&mut self, uid: &str, now: Timestamp) {
        self.edit(uid, now, |lease| {
            let already = lease.metadata.deletion_timestamp.take();
            lease.metadata.deletion_timestamp = already.or(Some(Time(now)));
        });
    }

    pub fn edit(&mut self, uid: &str, now: Timestamp, edit: impl FnOnce(&mut SpotLease)) {
        self.change(now, |leases| {
            let found = leases.iter_mut().find(|l| is(l, uid)).unwrap();
            edit(Arc::make_mut(found));
        });
    }

    /// Restores every lease from a backup, as [`super::store::Store::restore`] does for the pool.
    pub fn restore(&mut self, now: Timestamp) {
        self.change(now, |leases| {
            for lease in leases {
                let lease = Arc::make_mut(lease);
                let identity = SEALS.of(&*lease).unwrap();
                let (key, sealed) = identity.annotation();
                let annotations = lease.metadata.annotations.get_or_insert_default();
                annotations.insert(key.to_owned(), sealed.to_owned());
                let uid = lease.metadata.uid.take().unwrap_or_default();
                lease.metadata.uid = Some(format!("{uid}-restored"));
                lease.status = None;
            }
        });
    }

    fn change(&mut self, now: Timestamp, change: impl FnOnce(&mut Vec<Arc<SpotLease>>)) {
        let mut next = self.current().to_vec();
        change(&mut next);
        self.versions.push(next);
        self.since.push(now);
    }
}

/// The lease's identity.
fn identity(lease: &SpotLease) -> String {
    SEALS.of(lease).unwrap().value
}

fn is(lease: &SpotLease, wanted: &str) -> bool {
    identity(lease) == wanted
}

/// The lease that the tags of a machine name.
fn told(machine: &Machine) -> Option<&String> {
    machine.tags.get(TAG_KEYS.lease)
}

impl Earth {
    pub fn lease(&self, uid: &str) -> Option<&Arc<SpotLease>> {
        self.lending.current().iter().find(|l| is(l, uid))
    }

    /// Ends the pool's leases: all are deleted, or with `force` the pool's annotation lets its
    /// deletion end leased instances.
    pub fn end_leases(&mut self, force: bool) {
        let now = self.now;
        if force {
            self.store.edit(Edit::EndLeases, now);
            return;
        }
        let leases = self.lending.current().iter();
        let leases: Vec<_> = leases.map(|lease| identity(lease)).collect();
        for uid in leases {
            self.lending.end(&uid, now);
        }
    }

    /// Whether a lease has a right to its instance.
    pub fn is_open(&self, lease: &SpotLease) -> bool {
        let end = expires_at(lease, Some(self.store.current()));
        lease.metadata.deletion_timestamp.is_none() && end.is_none_or(|end| end > self.now)
    }

    /// Does the work of the controller of leases: a deleted lease is released once the stored pool
    /// has no instance of it.
    pub fn let_leases_go(&mut self) {
        let status = self.store.current().status.clone();
        let is_released = self.store.released_at.is_some();
        let bound = status.clone().unwrap_or_default().at_provider.leases;
        let goes = |lease: &SpotLease| {
            let uid = identity(lease);
            let is_held = status.is_none() || bound.contains_key(&uid);
            lease.metadata.deletion_timestamp.is_some() && (is_released || !is_held)
        };
        let leases = self.lending.current().iter();
        let gone: Vec<String> = leases
            .filter(|lease| goes(lease))
            .map(|lease| identity(lease))
            .collect();
        if gone.is_empty() {
            return;
        }
        let has = |m: &&&Machine| told(m).is_some_and(|uid| gone.contains(uid));
        let kept = self.cloud.live().iter().find(has).map(|m| m.id.clone());
        if let Some(id) = kept {
            self.violate(format!("a lease went and left {id} behind"));
        }
        let now = self.now;
        self.lending.change(now, |leases| {
            leases.retain(|l| !gone.iter().any(|uid| is(l, uid)));
        });
    }

    /// Checks an instance that is tagged for a lease.
    pub fn check_lease(&mut self, id: &str, uid: &str) {
        let machine = self.cloud.machines.iter().find(|m| m.id == id).unwrap();
        let mut wrong = Vec::new();
        if told(machine).is_some_and(|before| before != uid) {
            wrong.push("somebody else had it");
        }
        if !machine.is_ours() {
            wrong.push("it is not the pool's");
        }
        let mut others = self.cloud.live().into_iter().filter(|m| m.id != id);
        if others.any(|m| told(m).is_some_and(|told| told == uid)) {
            wrong.push("the lease has another one");
        }
        if self.lease(uid).is_none() {
            wrong.push("there is no such lease");
        }
        for what in wrong {
            self.violate(format!("{id} is given to {uid}: {what}"));
        }
    }

    /// Checks an instance that is terminated: no lease may have a right to it.
    pub fn check_nobody_has(&mut self, id: &str) {
        let machine = self.cloud.machines.iter().find(|m| m.id == id).unwrap();
        let lease = told(machine).and_then(|uid| self.lease(uid));
        let is_held = lease.is_some_and(|lease| self.is_open(lease));
        let pool = self.store.current();
        let annotations = pool.metadata.annotations.as_ref();
        let is_forced = annotations.is_some_and(|all| all.contains_key(END_LEASES));
        let forced = is_forced && self.store.is_deleted();
        if is_held && !forced {
            self.violate(format!("{id} is terminated while somebody has it"));
        }
    }

    /// Whether the pool's time is over.
    pub fn has_ended(&self) -> bool {
        self.store.current().spec.for_provider.has_ended(self.now)
    }

    /// Whether open leases lack instances, once nothing disturbs the pool.
    pub fn lacks_of_leases(&self) -> bool {
        let open = self.lending.current().iter().filter(|l| self.is_open(l));
        let has = |lease: &&Arc<SpotLease>| {
            let live = self.cloud.live().into_iter();
            let mut own = live.filter(|m| told(m) == Some(&identity(lease)));
            own.next().is_some()
        };
        let (having, lacking): (Vec<_>, Vec<_>) = open.partition(has);
        let maximum = self.store.current().spec.for_provider.size.maximum;
        let maximum = if self.has_ended() { 0 } else { maximum };
        !lacking.is_empty() && i32::try_from(having.len()).unwrap() < maximum
    }
}

#[async_trait]
impl Registry for Shared {
    async fn is_open(&self, _: &str, uid: &str) -> Result<bool, kube::Error> {
        let earth = self.lock();
        let lease = earth.lease(uid);
        Ok(lease.is_some_and(|lease| lease.metadata.deletion_timestamp.is_none()))
    }

    async fn gone(&self, mut uids: BTreeSet<String>) -> Result<BTreeSet<String>, kube::Error> {
        let earth = self.lock();
        uids.retain(|uid| earth.lease(uid).is_none());
        Ok(uids)
    }
}
