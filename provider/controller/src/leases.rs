//! Leases in the form that the planner and the instances need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use api::duration::Duration;
use api::lease::SpotLease;
use api::pool::{END_LEASES, SpotPool};
use api::tags;
use async_trait::async_trait;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Client, ResourceExt};
use provider_aws::Tags;
use provider_core::{Lease, Observed};
use provider_runtime::policies::{self, Permitted};
use provider_runtime::{finalizer, pause};
use tokio::sync::SetOnce;

use crate::seals::Seals;

/// The number of tags for a lease's keys. Unused ones are written too, so that a removed key does
/// not stay.
const KEYS: usize = 5;

/// Every lease, from the watch's store. There are none while the API server does not serve their
/// kind.
#[derive(Default)]
pub struct Leases {
    store: OnceLock<Store<SpotLease>>,
    known: SetOnce<()>,
}

impl Leases {
    /// Uses the leases in `store` from now on.
    pub fn follow(&self, store: Store<SpotLease>) {
        self.store.get_or_init(|| store);
    }

    /// Call this once the store has every lease, or there are no leases.
    pub fn are_known(&self) {
        // A second call changes nothing.
        drop(self.known.set(()));
    }

    /// The leases that name the pool. It waits until every lease is known: without them the pool
    /// would seem to have too many instances.
    pub async fn of(&self, pool: &SpotPool) -> Vec<Arc<SpotLease>> {
        self.known.wait().await;
        let all = self.store.get().map(Store::state).unwrap_or_default();
        let of_pool = ObjectRef::from_obj(pool);
        all.into_iter().filter(|l| is_of(l, &of_pool)).collect()
    }
}

/// Whether a lease names the pool.
pub fn is_of(lease: &SpotLease, pool: &ObjectRef<SpotPool>) -> bool {
    lease.metadata.namespace == pool.namespace && lease.spec.for_provider.pool_ref.name == pool.name
}

/// Reads the present state of leases from the API server, not from the watch's store.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Whether a lease with this name and identity exists, and is not being deleted.
    async fn is_open(&self, name: &str, identity: &str) -> Result<bool, kube::Error>;

    /// Those of the identities that no lease of the namespace has. A lease that is being deleted still
    /// has its identity.
    async fn gone(&self, identities: BTreeSet<String>) -> Result<BTreeSet<String>, kube::Error>;
}

/// The leases of one namespace, from the API server.
pub struct LiveLeases {
    /// The client of the API server.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
    /// Tells the identities of leases.
    pub seals: Seals,
}

impl LiveLeases {
    fn api(&self) -> Api<DeserializeGuard<SpotLease>> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

#[async_trait]
impl Registry for LiveLeases {
    async fn is_open(&self, name: &str, identity: &str) -> Result<bool, kube::Error> {
        // A lease that cannot be read gets no instance.
        let lease = self
            .api()
            .get_opt(name)
            .await?
            .and_then(|lease| lease.0.ok());
        Ok(lease.is_some_and(|lease| {
            let own = self.seals.of(&lease);
            let is_same = own.is_ok_and(|own| own.value == identity);
            is_same && is_kept(&lease) && lease.metadata.deletion_timestamp.is_none()
        }))
    }

    async fn gone(
        &self,
        mut identities: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, kube::Error> {
        for lease in self.api().list(&ListParams::default()).await? {
            let Ok(lease) = lease.0 else {
                // A lease that cannot be read may be any lease.
                return Ok(BTreeSet::new());
            };
            if let Ok(own) = self.seals.of(&lease) {
                identities.remove(&own.value);
            }
        }
        Ok(identities)
    }
}

/// The leases of a pool.
#[derive(Clone, Debug, Default)]
pub struct Leasing {
    /// The leases for the planner, oldest first.
    pub leases: Vec<Lease>,
    /// The tags for instances, by the lease's identity.
    pub told: BTreeMap<String, Told>,
    /// The time at which the next lease ends by itself.
    pub next_end: Option<Timestamp>,
    /// Whether the pool's deletion ends leased instances too.
    pub force: bool,
}

/// The tags that an instance gets for its lease.
#[derive(Clone, Debug)]
pub struct Told {
    /// The lease's name.
    pub lease: String,
    /// The tags by key.
    pub tags: Tags,
}

impl Leasing {
    /// Reads the `leases` that name the pool. A lease without a proven identity gets no instance.
    pub fn of(pool: &SpotPool, leases: &[Arc<SpotLease>], seals: &Seals, now: Timestamp) -> Self {
        let annotations = pool.metadata.annotations.as_ref();
        let force = annotations.and_then(|a| a.get(END_LEASES));
        let mut leasing = Self {
            force: force.is_some_and(|value| value == "true"),
            ..Self::default()
        };
        let mut leases: Vec<&SpotLease> = leases.iter().map(AsRef::as_ref).collect();
        leases.sort_by_key(|l| (l.metadata.creation_timestamp.clone(), l.name_any()));
        for lease in leases.into_iter().filter(|l| is_kept(l)) {
            if let Ok(identity) = seals.of(lease) {
                leasing.add(pool, lease, identity.value, now);
            }
        }
        leasing
    }

    /// Forgets the bindings of leases that are gone and never got their instance.
    ///
    /// The provider persists a binding before it reads the lease, and tags the instance after that.
    /// If it crashes after the first step, and the lease is gone, only the binding is left: it would
    /// keep the instance for ever. An instance with the lease's tag keeps its binding.
    ///
    /// # Errors
    ///
    /// The API server does not tell which leases exist. Then the bindings stay.
    pub async fn forget_gone(
        &self,
        registry: &dyn Registry,
        observed: &mut Observed,
    ) -> Result<(), kube::Error> {
        let is_untagged = |id: &String| {
            let mut instances = observed.instances.iter();
            instances.any(|i| i.id == *id && i.lease.is_none())
        };
        let is_known = |uid: &String| self.leases.iter().any(|lease| lease.uid == *uid);
        let unknown = observed.bindings.iter();
        let unknown = unknown.filter(|(uid, id)| !is_known(uid) && is_untagged(id));
        let unknown: BTreeSet<String> = unknown.map(|(uid, _)| uid.clone()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let gone = registry.gone(unknown).await?;
        observed.bindings.retain(|uid, _| !gone.contains(uid));
        Ok(())
    }

    fn add(&mut self, pool: &SpotPool, lease: &SpotLease, uid: String, now: Timestamp) {
        let status = pool.status.as_ref();
        let is_bound = status.is_some_and(|s| s.at_provider.leases.contains_key(&uid));
        let permitted = permitted(lease);
        // A pool whose time is over gives no idle instance away: it would outlive `endsAt`.
        let ends_at = pool.spec.for_provider.ends_at.as_ref();
        let is_open = ends_at.is_none_or(|end| end.0 > now);
        let may_wait = permitted.create && pool.spec.for_provider.leases.is_some() && is_open;
        if !is_bound && !may_wait {
            return;
        }
        let end = expires_at(lease, Some(pool)).filter(|_| permitted.delete);
        let others = finalizer::others(&lease.metadata, finalizer::MANAGED);
        let is_deleted = lease.metadata.deletion_timestamp.is_some() && others.is_empty();
        let has_ended = is_deleted || end.is_some_and(|end| end <= now);
        let is_over = has_ended && permitted.delete;
        if !is_over {
            self.next_end = [self.next_end, end].into_iter().flatten().min();
        }
        let tags = tags_of(lease, &uid);
        let texts = tags.iter().flat_map(|(key, value)| [&**key, &**value]);
        let digest = provider_core::digest(texts);
        let mut tags = tags.clone();
        tags.insert(tags::LEASE_DIGEST.into(), digest.clone());
        self.leases.push(Lease {
            uid: uid.clone(),
            name: lease.name_any(),
            is_over,
            digest,
        });
        let lease = lease.name_any();
        self.told.insert(uid, Told { lease, tags });
    }
}

/// The time at which a lease ends by itself. That is after its own lifetime or the longest lifetime
/// that its pool allows, whichever is shorter, both counted from its creation.
pub fn expires_at(lease: &SpotLease, pool: Option<&SpotPool>) -> Option<Timestamp> {
    let created = lease.metadata.creation_timestamp.as_ref()?.0;
    let leases = pool.and_then(|pool| pool.spec.for_provider.leases.as_ref());
    let allowed = leases.and_then(|leases| leases.max_lifetime.as_ref());
    let own = lease.spec.for_provider.lifetime.as_ref();
    let lifetimes = [allowed, own].into_iter().flatten();
    let lifetime = lifetimes.map(Duration::length).min()?;
    Some(created.saturating_add(lifetime).unwrap_or(Timestamp::MAX))
}

/// The permitted actions for a lease. Nothing is permitted for a paused lease, and for one with
/// unsupported policies.
fn permitted(lease: &SpotLease) -> Permitted {
    let policies = &lease.spec.management_policies;
    let nothing = Permitted {
        create: false,
        update: false,
        delete: false,
    };
    if pause::is_paused(&lease.metadata, policies) {
        return nothing;
    }
    policies::permitted(policies).unwrap_or(nothing)
}

/// Whether the lease has the finalizer, so that its deletion is noticed. No lease gets an instance
/// before.
fn is_kept(lease: &SpotLease) -> bool {
    finalizer::is_present(&lease.metadata, finalizer::MANAGED)
}

fn tags_of(lease: &SpotLease, identity: &str) -> Tags {
    let spec = &lease.spec.for_provider;
    let namespace = lease.namespace().unwrap_or_default();
    let mut tags: Tags = [
        (tags::LEASE, identity.to_owned()),
        (
            tags::LEASE_NAME,
            tags::namespaced_name(&namespace, &lease.name_any()),
        ),
        (tags::OWNER, spec.owner.clone()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    let keys = spec.authorized_keys.iter().cloned();
    let keys = keys.chain(std::iter::repeat(String::new()));
    tags.extend(
        (1..=KEYS)
            .zip(keys)
            .map(|(number, key)| (key_tag(number), key)),
    );
    tags
}

/// The tag key for a lease's key. `number` starts at 1.
fn key_tag(number: usize) -> String {
    format!("{}-{number}", tags::AUTHORIZED_KEY)
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
