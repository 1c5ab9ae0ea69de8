//! The data that reconciles share.

use std::collections::BTreeMap;
use std::sync::Mutex;

use api::pool::SpotPool;
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use provider_runtime::events::Events;
use provider_runtime::metrics::lifecycle::Lifecycle;
use provider_runtime::metrics::reconciles::OfController;
use provider_runtime::poll::Intervals;
use provider_runtime::usage::Usages;

use crate::access::{Fingerprint, Known};
use crate::beginnings::Beginnings;
use crate::holds::Holds;
use crate::leases::Leases;
use crate::locking::lock;
use crate::regions::Regions;
use crate::replaced::Replaced;

/// The field manager and event source of this provider.
pub const MANAGER: &str = "provider-gpu-spot";

/// The data that reconciles share.
pub struct Context {
    /// The client of the API server.
    pub client: Client,
    /// The accounts and regions of AWS.
    pub regions: Regions,
    /// The leases of pools.
    pub leases: Leases,
    /// The writer of events.
    pub events: Events,
    /// How often a pool is polled for which no event arrives.
    pub intervals: Intervals,
    /// Measures the stages of a pool's life.
    pub lifecycle: Lifecycle,
    /// Counts the reconciles of pools.
    pub reconciles: OfController,
    /// The turns of new pools.
    pub beginnings: Beginnings,
    /// The records of configurations in use.
    pub usages: Usages,
    /// The cache of resolved configurations.
    pub accesses: Known,
    /// The versions of pools that this process has replaced.
    pub(crate) replaced: Replaced,
    held: Mutex<BTreeMap<String, Held>>,
}

/// The requests that a pool does not repeat yet, because EC2 refused them for its spec or its
/// permissions. They end early when the spec or the access changes.
struct Held {
    holds: Holds,
    generation: Option<i64>,
    access: Fingerprint,
}

impl Context {
    /// Creates the context of a process.
    pub fn new(
        client: Client,
        events: Events,
        regions: Regions,
        accesses: Known,
        intervals: Intervals,
        lifecycle: Lifecycle,
        reconciles: OfController,
    ) -> Self {
        Self {
            events,
            client,
            regions,
            leases: Leases::default(),
            intervals,
            lifecycle,
            reconciles,
            beginnings: Beginnings::default(),
            usages: Usages::default(),
            accesses,
            replaced: Replaced::default(),
            held: Mutex::default(),
        }
    }

    /// The requests that the pool does not repeat yet.
    pub(crate) fn holds(&self, pool: &SpotPool, access: Fingerprint) -> Holds {
        let held = lock(&self.held);
        let of_pool = held.get(&pool.uid().unwrap_or_default());
        let asks_the_same =
            |held: &&Held| held.generation == pool.metadata.generation && held.access == access;
        let of_pool = of_pool.filter(asks_the_same);
        of_pool.map(|held| held.holds.clone()).unwrap_or_default()
    }

    /// Stores the requests that the pool does not repeat yet, as far as they are not over.
    pub(crate) fn hold(
        &self,
        pool: &SpotPool,
        access: Fingerprint,
        mut holds: Holds,
        now: Timestamp,
    ) {
        let uid = pool.uid().unwrap_or_default();
        holds.home.retain(|hold| hold.until > now);
        if holds.is_empty() {
            lock(&self.held).remove(&uid);
            return;
        }
        let held = Held {
            holds,
            generation: pool.metadata.generation,
            access,
        };
        lock(&self.held).insert(uid, held);
    }

    /// Removes everything about a pool that is gone.
    pub fn forget(&self, pool: &SpotPool) {
        let uid = pool.uid().unwrap_or_default();
        lock(&self.held).remove(&uid);
        self.replaced.forget(&uid);
        self.lifecycle.forget(&pool.metadata);
        self.usages.forget(&uid);
        let identity = self.regions.seals().of_or_first(pool);
        self.regions.forget(&identity.value);
    }
}
