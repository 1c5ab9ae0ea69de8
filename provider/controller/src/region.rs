//! One region of AWS as one set of credentials sees it, shared by its pools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use provider_aws::{Ec2, Ec2Error, Image, Subnet};
use provider_core::{Group, Instance, Notice, UnavailableOfferings, Volume};
use tokio::sync::watch;

use api::pool::SpotPool;

use crate::expectations::Expectations;

/// How long facts that hardly change are believed.
const FACTS_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// How long an announcement is kept for a pool's next reconcile.
const NOTICES_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// How long EC2 may leave a new group out of its lists.
const GROUP_UNSEEN: SignedDuration = SignedDuration::from_mins(1);
/// How long the results of EC2's status checks are believed; EC2 makes one a minute.
const CHECKS_LIFE: SignedDuration = SignedDuration::from_mins(1);

/// What EC2 listed, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Instances by pool UID. What did not change is the same in memory as in the look
    /// before, here and below.
    pub instances: Arc<BTreeMap<String, Vec<Arc<Instance>>>>,
    /// Groups by pool UID.
    pub groups: Arc<BTreeMap<String, Vec<Group>>>,
    /// Instances that fail EC2's status checks, by id.
    pub impaired: BTreeSet<String>,
    /// Home volumes.
    pub homes: Homes,
    /// When it was.
    pub at: Timestamp,
    /// The how manieth look it was, as [`Expectations::begin_look`] counts.
    pub number: u64,
}

/// The home volumes of a look. Where no pool has one, nobody asks: an account may not
/// even let the provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Homes {
    /// Nobody asked.
    #[default]
    Unseen,
    /// By pool UID.
    Seen(Arc<BTreeMap<String, Vec<Volume>>>),
    /// EC2 refused, which concerns pools with a home alone.
    Failed(Ec2Error),
}

impl Homes {
    /// A pool's, where somebody asked.
    pub fn of(&self, pool_uid: &str) -> Option<Result<&[Volume], &Ec2Error>> {
        match self {
            Self::Unseen => None,
            Self::Seen(seen) => Some(Ok(seen.get(pool_uid).map_or(&[][..], Vec::as_slice))),
            Self::Failed(error) => Some(Err(error)),
        }
    }
}

/// A look at EC2: what it showed, or why it failed.
pub type Taken = Result<Arc<Snapshot>, Ec2Error>;

/// The last look, if there was one.
pub type Look = Option<Taken>;

/// A region, shared by every pool with the same credentials in it.
pub struct Region {
    /// EC2.
    pub ec2: Arc<dyn Ec2>,
    /// The region's name.
    pub name: String,
    looks: watch::Sender<Look>,
    pools: Mutex<BTreeMap<String, ObjectRef<SpotPool>>>,
    unavailable: Mutex<UnavailableOfferings>,
    facts: tokio::sync::Mutex<Facts>,
    templates: Mutex<BTreeSet<String>>,
    notices: Mutex<BTreeMap<String, Notice>>,
    expectations: Mutex<Expectations>,
    new_groups: Mutex<BTreeMap<String, Fact<Group>>>,
    homes: Mutex<BTreeSet<String>>,
    fast_polling_until: Mutex<Timestamp>,
    hurried: tokio::sync::Notify,
}

#[derive(Default)]
struct Facts {
    zones: BTreeMap<Vec<String>, Fact<BTreeMap<String, BTreeSet<String>>>>,
    subnets: BTreeMap<Option<Vec<String>>, Fact<Vec<Subnet>>>,
    images: BTreeMap<String, Fact<Image>>,
    impaired: Option<Fact<BTreeSet<String>>>,
}

struct Fact<T> {
    value: T,
    since: Timestamp,
}

impl<T: Clone> Fact<T> {
    fn fresh(&self, now: Timestamp) -> Option<T> {
        (now.duration_since(self.since) < FACTS_LIFE).then(|| self.value.clone())
    }
}

impl Region {
    /// A region that nobody has looked at yet.
    pub fn new(ec2: Arc<dyn Ec2>, name: String) -> Self {
        Self {
            ec2,
            name,
            looks: watch::Sender::new(None),
            pools: Mutex::default(),
            unavailable: Mutex::default(),
            facts: tokio::sync::Mutex::default(),
            templates: Mutex::default(),
            notices: Mutex::default(),
            expectations: Mutex::default(),
            new_groups: Mutex::default(),
            homes: Mutex::default(),
            fast_polling_until: Mutex::new(Timestamp::UNIX_EPOCH),
            hurried: tokio::sync::Notify::new(),
        }
    }

    /// The last look; waits for the first one.
    pub async fn look(&self) -> Result<Arc<Snapshot>, Ec2Error> {
        let mut looks = self.looks.subscribe();
        loop {
            if let Some(look) = looks.borrow_and_update().clone() {
                return look;
            }
            if looks.changed().await.is_err() {
                tracing::error!(region = self.name, "nobody observes the region any more");
            }
        }
    }

    /// What the last look showed; nothing if it failed.
    pub fn last(&self) -> Arc<Snapshot> {
        let looks = self.looks.borrow();
        let snapshot = looks.as_ref().and_then(|look| look.as_ref().ok());
        snapshot.cloned().unwrap_or_default()
    }

    /// Publishes a look; answers the previous one.
    pub fn publish(&self, look: Result<Arc<Snapshot>, Ec2Error>) -> Look {
        if let Ok(snapshot) = &look {
            lock(&self.new_groups).retain(|uid, _| !snapshot.groups.contains_key(uid));
        }
        self.looks.send_replace(Some(look))
    }

    /// Tells which object a pool's UID belongs to, so that changes of its
    /// instances find it.
    pub fn register(&self, pool_uid: &str, pool: ObjectRef<SpotPool>) {
        lock(&self.pools).insert(pool_uid.to_owned(), pool);
    }

    /// The pool is gone, or uses another region.
    pub fn unregister(&self, pool_uid: &str) {
        lock(&self.pools).remove(pool_uid);
        lock(&self.homes).remove(pool_uid);
    }

    /// A pool has a home: looks show it from the next one on.
    pub fn has_home(&self, pool_uid: &str) {
        lock(&self.homes).insert(pool_uid.to_owned());
    }

    /// Whether any pool has one.
    pub fn has_homes(&self) -> bool {
        !lock(&self.homes).is_empty()
    }

    /// The registered pools, by UID.
    pub fn pools(&self) -> BTreeMap<String, ObjectRef<SpotPool>> {
        lock(&self.pools).clone()
    }

    /// What EC2 refused of late, for every pool of the region.
    pub fn unavailable(&self) -> MutexGuard<'_, UnavailableOfferings> {
        lock(&self.unavailable)
    }

    /// The launch templates that this process knows to exist, by name.
    pub fn templates(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.templates)
    }

    /// What this process ended.
    pub fn expectations(&self) -> MutexGuard<'_, Expectations> {
        lock(&self.expectations)
    }

    /// An instance of this control plane, as the last look shows it.
    pub fn instance(&self, id: &str) -> Option<Instance> {
        let looks = self.looks.borrow();
        let snapshot = looks.as_ref()?.as_ref().ok()?;
        let mut instances = snapshot.instances.values().flatten();
        let found = instances.find(|instance| instance.id == id);
        found.map(|instance| instance.as_ref().clone())
    }

    /// Remembers an announcement, unless a graver one is remembered.
    pub fn notify(&self, instance_id: &str, notice: Notice) {
        let mut notices = lock(&self.notices);
        notices.retain(|_, old| notice.at.duration_since(old.at) < NOTICES_LIFE);
        let known = notices.entry(instance_id.to_owned()).or_insert(notice);
        *known = notice.max(*known);
    }

    /// What was announced, by instance id.
    pub fn notices(&self) -> BTreeMap<String, Notice> {
        lock(&self.notices).clone()
    }

    /// Remembers a group that was created, until EC2's lists show it.
    pub fn created_group(&self, group: Group, now: Timestamp) {
        let mut groups = lock(&self.new_groups);
        groups.retain(|_, new| now.duration_since(new.since) < GROUP_UNSEEN);
        let fact = Fact {
            value: group.clone(),
            since: now,
        };
        groups.insert(group.pool_uid, fact);
    }

    /// The group of a pool that was created a moment ago.
    pub fn new_group(&self, pool_uid: &str, now: Timestamp) -> Option<Group> {
        let groups = lock(&self.new_groups);
        let new = groups.get(pool_uid)?;
        (now.duration_since(new.since) < GROUP_UNSEEN).then(|| new.value.clone())
    }

    /// The group was deleted.
    pub fn deleted_group(&self, pool_uid: &str) {
        lock(&self.new_groups).remove(pool_uid);
    }

    /// Asks for frequent looks until then: something is about to change.
    pub fn poll_fast_until(&self, until: Timestamp) {
        let mut fast_polling_until = lock(&self.fast_polling_until);
        if until > *fast_polling_until {
            *fast_polling_until = until;
            self.hurried.notify_one();
        }
    }

    /// Whether somebody waits for a change.
    pub fn is_hurried(&self, now: Timestamp) -> bool {
        *lock(&self.fast_polling_until) > now
    }

    /// Returns when somebody begins to wait for a change.
    pub async fn hurried(&self) {
        self.hurried.notified().await;
    }

    /// Instances that fail EC2's status checks, as of a minute ago.
    pub async fn impaired(&self, now: Timestamp) -> Result<BTreeSet<String>, Ec2Error> {
        if let Some(known) = &self.facts.lock().await.impaired
            && now.duration_since(known.since) < CHECKS_LIFE
        {
            return Ok(known.value.clone());
        }
        // Pools need the other facts meanwhile.
        let value = self.ec2.impaired().await?;
        self.facts.lock().await.impaired = Some(Fact {
            value: value.clone(),
            since: now,
        });
        Ok(value)
    }

    /// Asks EC2 again for facts that hardly change: somebody knows better.
    pub async fn forget_facts(&self) {
        *self.facts.lock().await = Facts::default();
    }

    /// The zones that sell each type.
    pub async fn zones_by_type(
        &self,
        types: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error> {
        let mut facts = self.facts.lock().await;
        if let Some(known) = facts.zones.get(types).and_then(|fact| fact.fresh(now)) {
            return Ok(known);
        }
        let value = self.ec2.zones_by_type(types).await?;
        let fact = Fact {
            value: value.clone(),
            since: now,
        };
        facts.zones.insert(types.to_vec(), fact);
        Ok(value)
    }

    /// The subnets of these ids, or the default ones.
    pub async fn subnets(
        &self,
        ids: Option<&[String]>,
        now: Timestamp,
    ) -> Result<Vec<Subnet>, Ec2Error> {
        let key = ids.map(<[String]>::to_vec);
        let mut facts = self.facts.lock().await;
        if let Some(known) = facts.subnets.get(&key).and_then(|fact| fact.fresh(now)) {
            return Ok(known);
        }
        let value = self.ec2.subnets(ids).await?;
        // Missing subnets may be created at any moment: only answers are kept.
        if !value.is_empty() {
            let fact = Fact {
                value: value.clone(),
                since: now,
            };
            facts.subnets.insert(key, fact);
        }
        Ok(value)
    }

    /// The image, where the account can see it.
    pub async fn image(&self, id: &str, now: Timestamp) -> Result<Option<Image>, Ec2Error> {
        let mut facts = self.facts.lock().await;
        if let Some(known) = facts.images.get(id).and_then(|fact| fact.fresh(now)) {
            return Ok(Some(known));
        }
        let value = self.ec2.image(id).await?;
        if let Some(image) = &value {
            let fact = Fact {
                value: image.clone(),
                since: now,
            };
            facts.images.insert(id.to_owned(), fact);
        }
        Ok(value)
    }
}

/// None of these locks is held while anything can panic, and what they guard is
/// replaced whole: a poisoned one is still consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
