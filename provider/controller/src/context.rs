//! What reconciles share.

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
use crate::region::lock;
use crate::regions::Regions;

/// The field manager and event source of this provider.
pub const MANAGER: &str = "provider-gpu-spot";

/// What reconciles share.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// AWS.
    pub regions: Regions,
    /// Leases.
    pub leases: Leases,
    /// Events.
    pub events: Events,
    /// How often a pool is looked at that nothing happens to.
    pub intervals: Intervals,
    /// How long the stages of a pool's life take.
    pub lifecycle: Lifecycle,
    /// How its reconciles go.
    pub reconciles: OfController,
    /// When new pools begin.
    pub beginnings: Beginnings,
    /// Which configurations are in use.
    pub usages: Usages,
    /// What configurations give access to.
    pub accesses: Known,
    held: Mutex<BTreeMap<String, Held>>,
}

/// A pool that EC2 refused for its spec or its permissions does not ask again at
/// once, unless its spec or its access changes.
struct Held {
    holds: Holds,
    generation: Option<i64>,
    access: Fingerprint,
}

impl Context {
    /// For one process.
    pub fn new(
        client: Client,
        events: Events,
        regions: Regions,
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
            accesses: Known::default(),
            held: Mutex::default(),
        }
    }

    /// What the pool does not ask EC2 for again yet.
    pub(crate) fn holds(&self, pool: &SpotPool, access: Fingerprint) -> Holds {
        let held = lock(&self.held);
        let of_pool = held.get(&pool.uid().unwrap_or_default());
        let asks_the_same =
            |held: &&Held| held.generation == pool.metadata.generation && held.access == access;
        let of_pool = of_pool.filter(asks_the_same);
        of_pool.map(|held| held.holds.clone()).unwrap_or_default()
    }

    /// Keeps what the pool does not ask for again, as far as that is not over.
    pub(crate) fn hold(
        &self,
        pool: &SpotPool,
        access: Fingerprint,
        mut holds: Holds,
        now: Timestamp,
    ) {
        let uid = pool.uid().unwrap_or_default();
        holds.home.retain(|hold| hold.until > now);
        if holds.launches_until.is_none() && holds.home.is_empty() {
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

    /// The pool is gone.
    pub fn forget(&self, pool: &SpotPool) {
        let uid = pool.uid().unwrap_or_default();
        lock(&self.held).remove(&uid);
        self.lifecycle.forget(&pool.metadata);
        self.usages.forget(&uid);
        self.regions.forget(&uid);
    }
}
