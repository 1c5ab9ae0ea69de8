//! Every region in use, by credentials.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api::pool::SpotPool;
use api::tags;
use kube::runtime::reflector::ObjectRef;
use provider_aws::TagKeys;
use provider_runtime::metrics::calls::Calls;
use tokio::sync::mpsc::UnboundedSender;

use crate::access::{Fingerprint, Resolved};
use crate::counted::Counted;
use crate::locking::lock;
use crate::observer::Surroundings;
use crate::region::Region;
use crate::sweeper::Owners;
use crate::{announcements, console_reader, observer};

/// The keys of the provider's tags.
pub const TAG_KEYS: TagKeys = TagKeys {
    cluster: tags::CLUSTER,
    pool_uid: tags::POOL_UID,
    launch: tags::LAUNCH,
    generation: tags::GENERATION,
    lease: tags::LEASE,
    lease_digest: tags::LEASE_DIGEST,
    authorized_key: tags::AUTHORIZED_KEY,
    activity: activity_report::REPORT,
    host_key: activity_report::HOST_KEY,
    setup: activity_report::SETUP,
    home: tags::HOME,
    home_copy_of: tags::HOME_COPY_OF,
    home_kept: tags::HOME_KEPT,
};

/// The fingerprint of the credentials, and the region's name.
type Key = (Fingerprint, String);

/// Keeps one [`Region`] for each fingerprint of credentials and region's name.
pub struct Regions {
    cluster: String,
    calls: Calls,
    around: Arc<Surroundings>,
    by_key: Mutex<BTreeMap<Key, Arc<Region>>>,
}

impl Regions {
    /// The regions of a control plane. `calls` counts the calls to EC2.
    pub fn new(cluster: String, calls: Calls, around: Surroundings) -> Self {
        Self {
            cluster,
            calls,
            around: Arc::new(around),
            by_key: Mutex::default(),
        }
    }

    /// The control plane's identity.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The channel for pools that have something to do.
    pub fn waker(&self) -> UnboundedSender<ObjectRef<SpotPool>> {
        self.around.wake.clone()
    }

    /// The pools and leases that may own resources in EC2.
    pub fn owners(&self) -> &dyn Owners {
        self.around.owners.as_ref()
    }

    /// The region for a pool. The pool is registered with this region, and removed from every other
    /// one.
    pub async fn of(
        &self,
        resolved: &Resolved,
        name: &str,
        pool_uid: &str,
        pool: ObjectRef<SpotPool>,
    ) -> Arc<Region> {
        let key = (resolved.fingerprint, name.to_owned());
        let known = lock(&self.by_key).get(&key).cloned();
        let region = match known {
            Some(region) => region,
            None => self.open(key.clone(), resolved, name).await,
        };
        region.register(pool_uid, pool);
        self.leave(pool_uid, Some(&key));
        region
    }

    /// Removes a pool that is gone.
    pub fn forget(&self, pool_uid: &str) {
        self.leave(pool_uid, None);
    }

    async fn open(&self, key: Key, resolved: &Resolved, name: &str) -> Arc<Region> {
        let ec2 = provider_aws::connect(&resolved.access, name, TAG_KEYS, &self.cluster).await;
        let events = match resolved.queues.get(name) {
            Some(url) => Some(provider_aws::connect_events(&resolved.access, name, url).await),
            None => None,
        };
        let ec2 = Counted::new(Arc::new(ec2), self.calls.clone());
        let mut by_key = lock(&self.by_key);
        let region = by_key.entry(key).or_insert_with(|| {
            let region = Arc::new(Region::new(Arc::new(ec2), name.to_owned()));
            let observed = Arc::downgrade(&region);
            tokio::spawn(observer::observe(observed, self.around.clone()));
            tokio::spawn(console_reader::follow(
                Arc::downgrade(&region),
                self.waker(),
            ));
            if let Some(events) = events {
                let warned = Arc::downgrade(&region);
                let wake = self.waker();
                tokio::spawn(announcements::follow(warned, Arc::new(events), wake));
            }
            region
        });
        region.clone()
    }

    /// Removes the pool from every region except `but`. A region that no pool uses any more is
    /// closed, and its observer stops with it.
    fn leave(&self, pool_uid: &str, but: Option<&Key>) {
        lock(&self.by_key).retain(|key, region| {
            if Some(key) == but {
                return true;
            }
            region.unregister(pool_uid);
            !region.pools().is_empty()
        });
    }
}
