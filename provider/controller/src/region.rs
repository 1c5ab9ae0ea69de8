//! One region of AWS with one set of credentials, shared by its pools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use provider_aws::{Ec2, Ec2Error, Image, Subnet};
use provider_core::{Checks, ErrorClass, Group, Instance, Volume};
use tokio::sync::watch;

use api::pool::SpotPool;

use crate::consoles::Consoles;
use crate::expectations::Expectations;
use crate::facts::Facts;
use crate::locking::lock;
use crate::notices::Notices;
use crate::shared::{Offerings, Share};
use crate::spot_prices::{self, SpotPrices};
use crate::unlisted::Unlisted;

/// How long the last look serves while later ones fail.
pub(crate) const LOOK_LIFE: SignedDuration = SignedDuration::from_mins(5);

/// How long a new group may be missing from EC2's lists.
pub(crate) const GROUP_UNSEEN: SignedDuration = SignedDuration::from_mins(1);
/// How long the results of EC2's status checks are cached. EC2 makes one check a minute.
const CHECKS_LIFE: SignedDuration = SignedDuration::from_mins(1);

/// One look at EC2.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The account in which the instances were listed.
    pub account: Account,
    /// Instances by pool UID. An unchanged value shares its memory with the look before. The same
    /// holds for the groups and the home volumes.
    pub instances: Arc<BTreeMap<String, Vec<Arc<Instance>>>>,
    /// Groups by pool UID.
    pub groups: Arc<BTreeMap<String, Vec<Group>>>,
    /// The zones of which EC2 told nothing, while it does not list all instances at once. None while
    /// it does.
    pub zones_down: Option<BTreeSet<String>>,
    /// When the groups were listed; none before a look could list them.
    pub groups_at: Option<Timestamp>,
    /// What EC2's checks say.
    pub checks: Checks,
    /// The home volumes.
    pub homes: Homes,
    /// The spot prices of the types that run.
    pub spot_prices: Arc<SpotPrices>,
    /// The parts of the look that failed, by operation. Instead of such a part the snapshot has the
    /// one of an earlier look.
    pub failures: BTreeMap<&'static str, Failure>,
    /// The time of the look.
    pub at: Timestamp,
    /// The number of the look: see [`Expectations::begin_look`].
    pub number: u64,
}

/// The account of a look.
#[derive(Clone, Debug, PartialEq)]
pub enum Account {
    /// The account's id.
    Known(String),
    /// AWS has not told it since the region came into use.
    Unknown(Ec2Error),
}

impl Default for Account {
    fn default() -> Self {
        Self::Unknown(Ec2Error {
            operation: "GetCallerIdentity",
            code: "NotAsked".into(),
            message: "no look has asked yet".into(),
            class: ErrorClass::Transient,
        })
    }
}

/// A part of a look that fails since some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The time of the first look that lacked the part.
    pub since: Timestamp,
    /// EC2's last error.
    pub error: Ec2Error,
}

/// The home volumes of a look. If no pool has a home, the provider does not list them: an account
/// may not even permit it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Homes {
    /// The volumes were not listed.
    #[default]
    Unseen,
    /// The volumes by pool UID.
    Seen(Arc<BTreeMap<String, Vec<Volume>>>),
    /// EC2 refused to list them, which affects only pools with a home.
    Failed(Ec2Error),
}

impl Homes {
    /// The volumes of a pool. `None` if they were not listed.
    pub fn of(&self, pool_uid: &str) -> Option<Result<&[Volume], &Ec2Error>> {
        match self {
            Self::Unseen => None,
            Self::Seen(seen) => Some(Ok(seen.get(pool_uid).map_or(&[][..], Vec::as_slice))),
            Self::Failed(error) => Some(Err(error)),
        }
    }
}

/// The result of a look at EC2: the snapshot, or the error.
pub type Taken = Result<Arc<Snapshot>, Ec2Error>;

/// The last look, if there was one.
pub type Look = Option<Taken>;

/// A region, shared by every pool with the same credentials in it.
pub struct Region {
    /// The API of EC2.
    pub ec2: Arc<dyn Ec2>,
    /// The region's name.
    pub name: String,
    looks: watch::Sender<Look>,
    last_good: Mutex<Arc<Snapshot>>,
    opened_at: Timestamp,
    pools: Mutex<BTreeMap<String, ObjectRef<SpotPool>>>,
    unavailable: Mutex<Offerings>,
    zones: Facts<Vec<String>, BTreeMap<String, BTreeSet<String>>>,
    subnets: Facts<Option<Vec<String>>, Vec<Subnet>>,
    images: Facts<String, Option<Image>>,
    checks: Mutex<Option<Dated<Checks>>>,
    /// What was read of the spot prices.
    pub spot_prices: tokio::sync::Mutex<spot_prices::Read>,
    templates: Mutex<BTreeSet<String>>,
    share: Share,
    expectations: Mutex<Expectations>,
    unlisted: Mutex<Unlisted>,
    new_groups: Mutex<BTreeMap<String, Dated<NewGroup>>>,
    homes: Mutex<BTreeSet<String>>,
    fast_polling_until: Mutex<Timestamp>,
    hurried: tokio::sync::Notify,
    /// The consoles of new instances.
    pub consoles: Arc<Consoles>,
}

/// A value since some time.
struct Dated<T> {
    value: T,
    since: Timestamp,
}

#[derive(Clone, Debug)]
struct NewGroup {
    group: Group,
    /// Whether a list has shown it.
    is_listed: bool,
}

fn is_young(new: &Dated<NewGroup>, now: Timestamp) -> bool {
    now.duration_since(new.since) < GROUP_UNSEEN
}

impl Region {
    /// A region without a look.
    pub fn new(ec2: Arc<dyn Ec2>, name: String, share: Share, opened_at: Timestamp) -> Self {
        Self {
            ec2,
            name,
            looks: watch::Sender::new(None),
            last_good: Mutex::default(),
            opened_at,
            pools: Mutex::default(),
            unavailable: Mutex::default(),
            zones: Facts::default(),
            subnets: Facts::default(),
            images: Facts::default(),
            checks: Mutex::default(),
            spot_prices: tokio::sync::Mutex::default(),
            templates: Mutex::default(),
            share,
            expectations: Mutex::default(),
            unlisted: Mutex::default(),
            new_groups: Mutex::default(),
            homes: Mutex::default(),
            fast_polling_until: Mutex::new(Timestamp::UNIX_EPOCH),
            hurried: tokio::sync::Notify::new(),
            consoles: Arc::default(),
        }
    }

    /// The last look. It waits for the first one.
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

    /// When the last look that succeeded was made. Before the first one it is the time at which the
    /// region came into use.
    pub fn observed_at(&self) -> Timestamp {
        self.last().at.max(self.opened_at)
    }

    /// The snapshot of the last look that succeeded. It is empty if there was none.
    pub fn last(&self) -> Arc<Snapshot> {
        lock(&self.last_good).clone()
    }

    /// Publishes a look, and returns the published looks before and after. For some minutes, the
    /// last snapshot is published in place of a look that failed: every instance that ends is
    /// described anew anyway, and one hiccup of EC2 concerns no pool. An error that a person has to
    /// mend is published at once.
    pub fn publish(&self, look: Taken, now: Timestamp) -> (Look, Taken) {
        let shown = match look {
            Ok(snapshot) => {
                for (uid, new) in lock(&self.new_groups).iter_mut() {
                    new.value.is_listed |= snapshot.groups.contains_key(uid);
                }
                let listed = snapshot.instances.values().flatten();
                self.unlisted().forget(listed.map(|i| i.id.as_str()));
                *lock(&self.last_good) = snapshot.clone();
                if let Account::Known(account) = &snapshot.account {
                    *lock(&self.unavailable) = self.share.unavailable(account);
                }
                Ok(snapshot)
            }
            Err(error) => {
                let last = self.last();
                let is_recent = last.number > 0 && now.duration_since(last.at) < LOOK_LIFE;
                if is_recent && !error.class.needs_person() {
                    Ok(last)
                } else {
                    Err(error)
                }
            }
        };
        (self.looks.send_replace(Some(shown.clone())), shown)
    }

    /// Registers the object that a pool's UID belongs to, so that changes of its instances wake it.
    pub fn register(&self, pool_uid: &str, pool: ObjectRef<SpotPool>) {
        lock(&self.pools).insert(pool_uid.to_owned(), pool);
    }

    /// Removes a pool that is gone, or that uses another region.
    pub fn unregister(&self, pool_uid: &str) {
        lock(&self.pools).remove(pool_uid);
        lock(&self.homes).remove(pool_uid);
        self.consoles.forget(pool_uid);
    }

    /// Registers that a pool has a home. The looks include home volumes from the next one on.
    pub fn has_home(&self, pool_uid: &str) {
        lock(&self.homes).insert(pool_uid.to_owned());
    }

    /// Whether any pool has a home.
    pub fn has_homes(&self) -> bool {
        !lock(&self.homes).is_empty()
    }

    /// The registered pools, by UID.
    pub fn pools(&self) -> BTreeMap<String, ObjectRef<SpotPool>> {
        lock(&self.pools).clone()
    }

    /// The offerings that EC2 refused recently, for every pool of the region.
    pub fn unavailable(&self) -> Offerings {
        lock(&self.unavailable).clone()
    }

    /// The launch templates that this process knows to exist, by name.
    pub fn templates(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.templates)
    }

    /// The terminations that this process expects to see.
    pub fn expectations(&self) -> MutexGuard<'_, Expectations> {
        lock(&self.expectations)
    }

    /// An instance of this control plane, as the last look that succeeded shows it.
    pub fn instance(&self, id: &str) -> Option<Instance> {
        let snapshot = self.last();
        let mut instances = snapshot.instances.values().flatten();
        let found = instances.find(|instance| instance.id == id);
        found.map(|instance| instance.as_ref().clone())
    }

    /// The announcements of AWS about instances.
    pub fn notices(&self) -> &Notices {
        &self.share.all.notices
    }

    /// The launched instances that no look has shown.
    pub fn unlisted(&self) -> MutexGuard<'_, Unlisted> {
        lock(&self.unlisted)
    }

    /// Stores a group that was created, for the time in which parts of EC2 may not know it.
    pub fn created_group(&self, group: Group, now: Timestamp) {
        let mut groups = lock(&self.new_groups);
        groups.retain(|_, new| is_young(new, now));
        let fact = Dated {
            since: now,
            value: NewGroup {
                group: group.clone(),
                is_listed: false,
            },
        };
        groups.insert(group.pool_uid, fact);
    }

    /// The group of a pool that was created a moment ago and that no list has shown, if there is one.
    pub fn new_group(&self, pool_uid: &str, now: Timestamp) -> Option<Group> {
        let groups = lock(&self.new_groups);
        let new = groups.get(pool_uid).filter(|new| is_young(new, now))?;
        (!new.value.is_listed).then(|| new.value.group.clone())
    }

    /// Whether the group of a pool was created a moment ago. A launch may not find it yet, although a
    /// list shows it.
    pub fn has_young_group(&self, pool_uid: &str, now: Timestamp) -> bool {
        let groups = lock(&self.new_groups);
        groups.get(pool_uid).is_some_and(|new| is_young(new, now))
    }

    /// Removes a group that was deleted.
    pub fn deleted_group(&self, pool_uid: &str) {
        lock(&self.new_groups).remove(pool_uid);
    }

    /// Asks for frequent looks until that time, because something is about to change.
    pub fn poll_fast_until(&self, until: Timestamp) {
        let mut fast_polling_until = lock(&self.fast_polling_until);
        if until > *fast_polling_until {
            *fast_polling_until = until;
            self.hurried.notify_one();
        }
    }

    /// Whether a pool waits for a change.
    pub fn is_hurried(&self, now: Timestamp) -> bool {
        *lock(&self.fast_polling_until) > now
    }

    /// Returns when a pool begins to wait for a change.
    pub async fn hurried(&self) {
        self.hurried.notified().await;
    }

    /// What EC2's checks say. The answer is at most a minute old.
    pub async fn checks(&self, now: Timestamp) -> Result<Checks, Ec2Error> {
        let known = |known: &Dated<Checks>| {
            (now.duration_since(known.since) < CHECKS_LIFE).then(|| known.value.clone())
        };
        if let Some(value) = lock(&self.checks).as_ref().and_then(known) {
            return Ok(value);
        }
        let value = self.ec2.checks().await?;
        *lock(&self.checks) = Some(Dated {
            value: value.clone(),
            since: now,
        });
        Ok(value)
    }

    /// Clears the cached facts, because a user asked for a reconcile now.
    pub fn forget_facts(&self) {
        self.zones.clear();
        self.subnets.clear();
        self.images.clear();
        *lock(&self.checks) = None;
    }

    /// The zones that offer each type.
    pub async fn zones_by_type(
        &self,
        types: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error> {
        let ask = self.ec2.zones_by_type(types);
        self.zones.get(types.to_vec(), now, ask).await
    }

    /// The subnets with these ids, or the default ones.
    pub async fn subnets(
        &self,
        ids: Option<&[String]>,
        now: Timestamp,
    ) -> Result<Vec<Subnet>, Ec2Error> {
        let ask = self.ec2.subnets(ids);
        self.subnets
            .get(ids.map(<[String]>::to_vec), now, ask)
            .await
    }

    /// The image. `None` if the account cannot see it.
    pub async fn image(&self, id: &str, now: Timestamp) -> Result<Option<Image>, Ec2Error> {
        let ask = self.ec2.image(id);
        self.images.get(id.to_owned(), now, ask).await
    }
}
