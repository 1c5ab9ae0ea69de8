//! Every region in use, by credentials.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use api::pool::SpotPool;
use api::tags;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use provider_aws::TagKeys;
use provider_runtime::metrics::calls::Calls;
use tokio::sync::mpsc::UnboundedSender;

use crate::access::Resolved;
use crate::announcements::{self, Queue, Turn};
use crate::counted::Counted;
use crate::identity::ControlPlane;
use crate::locking::lock;
use crate::observer::Surroundings;
use crate::open_regions::{Key, OpenRegions};
use crate::pace::{Pace, Paces};
use crate::region::Region;
use crate::seals::Seals;
use crate::shared::{Share, Shared};
use crate::sweeper::Owners;
use crate::{console_reader, observer};

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

/// The time before a task that panicked begins anew.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// Keeps one [`Region`] for each fingerprint of credentials and region's name.
pub struct Regions {
    control_plane: ControlPlane,
    calls: Calls,
    around: Arc<Surroundings>,
    open: Arc<OpenRegions>,
    shared: Arc<Shared>,
    paces: Arc<Paces>,
    /// The turn to read each queue, by its URL.
    turns: Mutex<BTreeMap<String, Turn>>,
}

impl Regions {
    /// The regions of a control plane. `calls` counts the calls to EC2.
    pub fn new(control_plane: ControlPlane, calls: Calls, around: Surroundings) -> Self {
        Self {
            control_plane,
            calls,
            around: Arc::new(around),
            open: Arc::default(),
            shared: Arc::default(),
            paces: Arc::default(),
            turns: Mutex::default(),
        }
    }

    /// The control plane's identity.
    pub fn cluster(&self) -> &str {
        &self.control_plane.identity
    }

    /// Tells the identities of pools and leases.
    pub fn seals(&self) -> &Seals {
        &self.control_plane.seals
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
        let known = self.open.by_key().get(&key).cloned();
        let region = match known {
            Some(region) => region,
            None => self.open(key.clone(), resolved, name).await,
        };
        region.register(pool_uid, pool);
        self.leave(pool_uid, Some(&key));
        region
    }

    /// The age of the last observation, by region. With several credentials in a region, it is the
    /// age of the oldest one.
    pub fn ages(&self, now: Timestamp) -> BTreeMap<String, SignedDuration> {
        let mut ages = BTreeMap::new();
        for region in self.open.by_key().values() {
            let age = now.duration_since(region.observed_at());
            let oldest = ages.entry(region.name.clone()).or_insert(age);
            *oldest = age.max(*oldest);
        }
        ages
    }

    /// Removes a pool that is gone.
    pub fn forget(&self, pool_uid: &str) {
        self.leave(pool_uid, None);
    }

    async fn open(&self, key: Key, resolved: &Resolved, name: &str) -> Arc<Region> {
        let server = resolved.access.endpoint.as_deref().unwrap_or("AWS");
        let place = format!("{server} {name}");
        let ec2 = provider_aws::connect(&resolved.access, name, TAG_KEYS, self.cluster()).await;
        let queue = match resolved.queues.get(name) {
            Some(url) => Some(self.queue(resolved, name, url).await),
            None => None,
        };
        let ec2 = Counted::new(
            Arc::new(ec2),
            self.calls.clone(),
            Pace::new(self.paces.clone(), &place),
        );
        let mut by_key = self.open.by_key();
        let region = by_key.entry(key).or_insert_with(|| {
            let region = Arc::new(Region::new(
                Arc::new(ec2),
                name.to_owned(),
                Share {
                    all: self.shared.clone(),
                    place: place.clone(),
                },
                Timestamp::now(),
            ));
            let observed = Arc::downgrade(&region);
            let around = self.around.clone();
            supervise(observed.clone(), ("observer", AFTER_PANIC), move |region| {
                observer::observe(region, around.clone())
            });
            let wake = self.waker();
            supervise(observed, ("console reader", AFTER_PANIC), move |region| {
                console_reader::follow(region, wake.clone())
            });
            if let Some(queue) = queue {
                let warned = Arc::downgrade(&region);
                let wake = self.waker();
                supervise(warned, ("reader of events", AFTER_PANIC), move |region| {
                    announcements::follow(region, queue.clone(), wake.clone())
                });
            }
            region
        });
        region.clone()
    }

    async fn queue(&self, resolved: &Resolved, name: &str, url: &str) -> Queue {
        let events = provider_aws::connect_events(&resolved.access, name, url).await;
        let turn = lock(&self.turns).entry(url.to_owned()).or_default().clone();
        Queue {
            events: Arc::new(events),
            turn,
            open: self.open.clone(),
        }
    }

    /// Removes the pool from every region except `but`. A region that no pool uses any more is
    /// closed, and its observer stops with it.
    fn leave(&self, pool_uid: &str, but: Option<&Key>) {
        self.open.by_key().retain(|key, region| {
            if Some(key) == but {
                return true;
            }
            region.unregister(pool_uid);
            !region.pools().is_empty()
        });
    }
}

/// Runs a task of a region, and runs it again if it panics: without its observer, a region's pools
/// would work by the same picture for ever.
fn supervise<R, F>(
    region: Weak<R>,
    (task, after_panic): (&'static str, Duration),
    run: impl Fn(Weak<R>) -> F + Send + Sync + 'static,
) where
    R: Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        while let Err(error) = tokio::spawn(run(region.clone())).await {
            if region.strong_count() == 0 {
                return;
            }
            tracing::error!(task, %error, "a task of a region failed, and begins anew");
            tokio::time::sleep(after_panic).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn an_observer_that_panics_begins_anew_and_one_that_ends_does_not() {
        let region = Arc::new(());
        let runs = Arc::new(AtomicU32::new(0));
        let (ended, end) = tokio::sync::oneshot::channel();
        let ended = Arc::new(Mutex::new(Some(ended)));
        let counted = runs.clone();
        supervise(
            Arc::downgrade(&region),
            ("test", Duration::ZERO),
            move |_| {
                let run = counted.fetch_add(1, Ordering::SeqCst);
                let ended = ended.clone();
                async move {
                    assert!(run > 0, "the first run fails");
                    if let Some(ended) = lock(&ended).take() {
                        ended.send(()).unwrap();
                    }
                }
            },
        );
        end.await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }
}
