//! The API server, reduced to one pool. Every write names the version that it was made from.

use api::capacity::CapacityType;
use api::home::PoolHome;
use api::pool::{
    END_LEASES, PoolFallback, PoolInstance, PoolReplace, PoolSize, PoolSpread, PoolSsh,
    PoolTypePreference, SpotPool, SpotPoolStatus,
};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::core::Status;

use super::earth::{STATUS, Shared};
use super::invariants;
use crate::seals::SEALS;
use crate::status_writer::PoolStore;

/// Every version of the pool, the newest last.
pub struct Store {
    pub versions: Vec<SpotPool>,
    /// The time of each version.
    pub since: Vec<Timestamp>,
    /// The time at which the finalizer was removed.
    pub released_at: Option<Timestamp>,
    /// The number of status writes that were accepted.
    pub writes: usize,
    /// `spec.size.maximum` at the last of these writes.
    pub promised_maximum: i32,
}

/// The edits of users.
#[derive(Clone, Debug)]
pub enum Edit {
    Size(PoolSize),
    UserData(String),
    SshCidrs(Vec<String>),
    SshGroups(Vec<String>),
    Types(Vec<String>),
    Zones(Option<Vec<String>>),
    Market(CapacityType),
    Image(&'static str),
    Preference(PoolTypePreference),
    Spread(PoolSpread),
    Fallback(PoolFallback),
    Replace(PoolReplace),
    Home(PoolHome),
    EndsIn(Option<i64>),
    NoHome,
    Subnets(Vec<String>),
    Tag(&'static str, &'static str),
    Keys(Option<Vec<&'static str>>),
    Delete,
    EndLeases,
}

impl Store {
    pub fn new(pool: SpotPool) -> Self {
        let mut store = Self {
            versions: Vec::new(),
            since: Vec::new(),
            released_at: None,
            writes: 0,
            promised_maximum: 0,
        };
        store.add(pool, Timestamp::MIN);
        store
    }

    pub fn current(&self) -> &SpotPool {
        self.versions.last().unwrap()
    }

    /// Restores the pool from a backup in an empty cluster: it has another UID, no status, and the
    /// annotations that the provider wrote.
    pub fn restore(&mut self) {
        let mut pool = self.current().clone();
        let identity = SEALS.of(&pool).unwrap();
        let (key, sealed) = identity.annotation();
        let annotations = pool.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), sealed.to_owned());
        pool.metadata.uid = Some(format!("uid-{}", self.versions.len()));
        pool.metadata.generation = Some(1);
        pool.status = None;
        self.add(pool, Timestamp::MIN);
    }

    /// Takes the pool's status away.
    pub fn lose_status(&mut self) {
        let mut pool = self.current().clone();
        pool.status = None;
        self.add(pool, Timestamp::MIN);
    }

    /// Removes what an older provider did not write: the account and the identity.
    pub fn lose_place(&mut self) {
        let mut pool = self.current().clone();
        let shown = pool.status.as_mut().map(|status| &mut status.at_provider);
        if let Some(shown) = shown {
            (shown.account, shown.identity) = (None, None);
        }
        self.add(pool, Timestamp::MIN);
    }

    /// The version that a cache shows if it is `versions` behind, but by `limit` at most.
    pub fn behind(&self, versions: usize, limit: SignedDuration, now: Timestamp) -> usize {
        behind(&self.since, versions, limit, now)
    }

    pub fn is_deleted(&self) -> bool {
        self.current().metadata.deletion_timestamp.is_some()
    }

    pub fn edit(&mut self, edit: Edit, now: Timestamp) {
        let mut pool = self.current().clone();
        let spec = &mut pool.spec.for_provider;
        match edit {
            Edit::Size(size) => spec.size = size,
            Edit::UserData(text) => spec.user_data = Some(text),
            Edit::SshCidrs(cidrs) => {
                spec.ssh.get_or_insert_with(PoolSsh::default).allowed_cidrs = cidrs;
            }
            Edit::SshGroups(ids) => {
                let ssh = spec.ssh.get_or_insert_with(PoolSsh::default);
                ssh.allowed_security_group_ids = ids;
            }
            Edit::Types(types) => spec.instance_types = types,
            Edit::Zones(zones) => spec.zones = zones,
            Edit::Market(capacity_type) => spec.capacity_type = capacity_type,
            Edit::Image(id) => id.clone_into(&mut spec.image.id),
            Edit::Preference(preference) => spec.type_preference = preference,
            Edit::Spread(spread) => spec.spread = Some(spread),
            Edit::Fallback(fallback) => spec.fallback = Some(fallback),
            Edit::Replace(replace) => spec.replace = Some(replace),
            Edit::EndsIn(seconds) => {
                let end = |seconds| now + SignedDuration::from_secs(seconds);
                spec.ends_at = seconds.map(end).map(Time);
            }
            Edit::NoHome => spec.home = None,
            Edit::Home(home) => spec.home = Some(home),
            Edit::Tag(key, value) => {
                spec.tags.insert(key.into(), value.into());
            }
            Edit::Keys(keys) => {
                let owned = |keys: Vec<&str>| keys.into_iter().map(Into::into).collect();
                spec.authorized_keys = keys.map(owned);
            }
            Edit::Subnets(ids) => spec.subnet_ids = Some(ids),
            Edit::EndLeases => {
                let annotations = pool.metadata.annotations.get_or_insert_default();
                annotations.insert(END_LEASES.to_owned(), "true".to_owned());
            }
            Edit::Delete => {
                let already = pool.metadata.deletion_timestamp.take();
                pool.metadata.deletion_timestamp = already.or(Some(Time(now)));
            }
        }
        pool.metadata.generation = pool.metadata.generation.map(|g| g + 1);
        self.add(pool, now);
    }

    /// Adds a version. The API server stores whole seconds only, and a write that changes nothing
    /// makes no version.
    fn add(&mut self, mut pool: SpotPool, now: Timestamp) {
        if let Some(status) = &mut pool.status {
            keep_whole_seconds(status);
        }
        if self.versions.last() == Some(&pool) {
            return;
        }
        pool.metadata.resource_version = Some(self.versions.len().to_string());
        self.versions.push(pool);
        self.since.push(now);
    }

    fn admit(&self, meta: &ObjectMeta) -> Result<(), kube::Error> {
        if self.released_at.is_some() {
            return Err(refused("NotFound", 404));
        }
        if meta.resource_version != self.current().metadata.resource_version {
            return Err(refused("Conflict", 409));
        }
        Ok(())
    }
}

/// The index of the version that a cache shows if it is `versions` behind, but by `limit` at most.
/// `since` has the time of each version.
pub fn behind(
    since: &[Timestamp],
    versions: usize,
    limit: SignedDuration,
    now: Timestamp,
) -> usize {
    let settled = |since: &Timestamp| now.duration_since(*since) > limit;
    let oldest = since.iter().rposition(settled).unwrap_or(0);
    (since.len() - 1).saturating_sub(versions).max(oldest)
}

fn keep_whole_seconds(status: &mut SpotPoolStatus) {
    let pool = &mut status.at_provider;
    let changed = status.conditions.iter_mut();
    let times = changed
        .map(|c| &mut c.last_transition_time)
        .chain(pool.launches.iter_mut().map(|l| &mut l.decided_at))
        .chain(pool.unavailable_offerings.iter_mut().map(|c| &mut c.until))
        .chain(&mut pool.spot_short_since)
        .chain(pool.home.iter_mut().flat_map(|h| &mut h.asked_at))
        .chain(pool.instances.iter_mut().flat_map(|i| {
            let PoolInstance {
                launched_at,
                impaired_since,
                ..
            } = i;
            launched_at.iter_mut().chain(impaired_since)
        }));
    for Time(time) in times {
        *time = Timestamp::from_second(time.as_second()).unwrap();
    }
}

/// An error of the API server.
pub fn refused(reason: &str, code: u16) -> kube::Error {
    kube::Error::Api(Status::failure(reason, reason).with_code(code).boxed())
}

#[async_trait]
impl PoolStore for Shared {
    async fn write_status(
        &self,
        pool: &SpotPool,
        status: &SpotPoolStatus,
    ) -> Result<SpotPool, kube::Error> {
        self.effect(STATUS, |earth| {
            let store = &mut earth.store;
            store.admit(&pool.metadata)?;
            let mut next = store.current().clone();
            next.status = Some(status.clone());
            store.promised_maximum = next.spec.for_provider.size.maximum;
            store.writes += 1;
            store.add(next, earth.now);
            invariants::check_promises(earth);
            Ok(earth.store.current().clone())
        })
        .await
    }

    async fn release(&self, meta: &ObjectMeta) -> Result<(), kube::Error> {
        self.effect("release", |earth| {
            earth.store.admit(meta)?;
            earth.store.released_at = Some(earth.now);
            invariants::check_release(earth);
            Ok(())
        })
        .await
    }
}
