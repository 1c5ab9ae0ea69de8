//! The state that survives a crash of the provider, and the places where it crashes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use memory_ec2::{Buckets, Cloud, End, Fault, Faults, Firewall, SplitMix64, Storage, error};
use provider_aws::{Ec2Error, Event, Tags};
use provider_core::{Notice, NoticeKind, Offering};

use super::lending::Lending;
use super::ours::{Collection as _, Instances as _, Tagged as _, is_of_cluster, is_ours};
use super::store::Store;
use crate::regions::TAG_KEYS;
use crate::spot_prices::SpotPrices;

/// How long the SDK waits for EC2's answer, with its own repetitions.
const SDK_LIMIT: SignedDuration = SignedDuration::from_secs(45);

/// EC2, the API server, the users, and the time.
pub struct Earth {
    pub now: Timestamp,
    /// The account whose EC2 is [`Self::cloud`]: the pool's, except during a call with credentials
    /// of another one.
    pub account: &'static str,
    /// The EC2 of every other account.
    pub other_accounts: BTreeMap<&'static str, Cloud>,
    pub cloud: Cloud,
    pub store: Store,
    pub lending: Lending,
    pub faults: Faults,
    pub dice: SplitMix64,
    /// The API operation of every call to EC2, in order.
    pub calls: Vec<&'static str>,
    /// EC2's events that the provider has not read yet.
    pub queue: Vec<Event>,
    /// Violations of the rules that must always hold.
    pub violations: Vec<String>,
    /// The instances that ever had the home, in order.
    pub written: Vec<String>,
    /// EC2's spot prices, by instance type and zone.
    pub spot_prices: SpotPrices,
    /// The types, zones and markets of launches, in order.
    pub asked: Vec<Offering>,
    /// The number of effects in this reconcile, and in all.
    pub effects: usize,
    pub all_effects: usize,
    /// Where the provider stops.
    pub stop: Option<Stop>,
    /// Whether the provider may end resources that belong to no pool.
    pub is_sweeping: bool,
    /// Whether the provider has paused and not crashed at the last stop.
    pub is_paused: bool,
}

/// Where and how the provider stops.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub at: At,
    pub how: How,
}

/// An effect of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The effect with this number in its reconcile, from 0.
    Effect(usize),
    /// The effect with this number in the provider's whole work, from 0.
    OfAll(usize),
    /// The next effect with this name: an API operation of EC2, or [`STATUS`].
    Named(&'static str),
}

/// How the provider stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The provider crashes, and the effect does not happen.
    DiesBefore,
    /// The provider crashes, and the effect happened.
    DiesAfter,
    /// The provider pauses before the effect, and something else happens meanwhile.
    Pauses,
}

/// The name of a status write.
pub const STATUS: &str = "status";

impl Earth {
    pub fn pass_time(&mut self, duration: SignedDuration) {
        self.now = self.now.saturating_add(duration).unwrap();
        self.cloud.pass_time(self.now);
    }

    /// Goes to the EC2 of an account. Returns the account of the one before.
    pub fn enter(&mut self, account: &'static str) -> &'static str {
        if account == self.account {
            return account;
        }
        let known = self.other_accounts.remove(account);
        let cloud = known.unwrap_or_else(|| empty(&self.cloud));
        let left = std::mem::replace(&mut self.cloud, cloud);
        let before = std::mem::replace(&mut self.account, account);
        self.other_accounts.insert(before, left);
        self.cloud.pass_time(self.now);
        before
    }

    /// AWS makes an announcement about an instance, and carries it out.
    pub fn announce(&mut self, id: &str, kind: NoticeKind) {
        let at = self.now;
        if kind == NoticeKind::Interruption {
            self.cloud.interrupt(id, at);
        }
        self.queue.push(Event {
            instance_id: id.to_owned(),
            notice: Some(Notice { kind, at }),
        });
    }

    /// Stopped instances run again. Instances of others in the pool's group, for which EC2 refuses
    /// to delete the group, end.
    pub fn end_what_others_do(&mut self) {
        let ours: Vec<String> = self.cloud.firewall.ours().map(|g| g.id.clone()).collect();
        for machine in &mut self.cloud.machines {
            machine.is_stopped = false;
            machine.is_impaired = false;
            let is_inside = machine.group_ids.iter().any(|id| ours.contains(id));
            if is_inside && !machine.is_ours() && machine.is_live() {
                machine.ended = Some(End {
                    at: self.now,
                    reason: "Client.UserInitiatedShutdown",
                    message: "",
                });
            }
        }
    }

    /// Somebody changes the tags of an instance to those of another pool.
    pub fn give_away(&mut self, id: &str) {
        let tags = &mut self.cloud.machine(id).tags;
        tags.insert(TAG_KEYS.pool_uid.into(), "other-uid".into());
    }

    /// Whether the provider may change a resource with these tags: it belongs to the pool or, while
    /// the sweeper may run, to no pool.
    pub fn may_change(&self, tags: &Tags) -> bool {
        let is_of_nobody = tags.get(TAG_KEYS.pool_uid).is_some_and(|uid| uid == "gone");
        is_ours(tags) || (self.is_sweeping && is_of_nobody && is_of_cluster(tags))
    }

    /// EC2's answer to one call: that of `act`, unless EC2 throttles the call or fails.
    pub fn answer<T>(
        &mut self,
        operation: &'static str,
        act: impl FnOnce(&mut Self) -> Result<T, Ec2Error>,
    ) -> Result<T, Ec2Error> {
        self.calls.push(operation);
        self.cloud.admit(operation, self.now)?;
        match self.faults.of(operation, &mut self.dice) {
            None => act(self),
            Some(Fault::Refused(code)) => Err(error(operation, code)),
            Some(Fault::Hangs) => {
                self.pass_time(SDK_LIMIT);
                Err(error(operation, "Timeout"))
            }
            Some(Fault::LostReply) => {
                drop(act(self));
                Err(error(operation, "Timeout"))
            }
        }
    }

    pub fn calls_of(&self, operation: &str) -> usize {
        let same = |call: &&&str| **call == operation;
        self.calls.iter().filter(same).count()
    }

    pub fn violate(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    fn next_stop(&mut self, name: &str) -> Option<How> {
        let (in_reconcile, of_all) = (self.effects, self.all_effects);
        self.effects += 1;
        self.all_effects += 1;
        let stops = |stop: &mut Stop| match stop.at {
            At::Effect(number) => number == in_reconcile,
            At::OfAll(number) => number == of_all,
            At::Named(named) => named == name,
        };
        self.stop.take_if(stops).map(|stop| stop.how)
    }
}

/// The EC2 of another account, with nothing in it.
fn empty(like: &Cloud) -> Cloud {
    Cloud {
        machines: Vec::new(),
        fleets: BTreeMap::new(),
        templates: BTreeMap::new(),
        firewall: Firewall::default(),
        storage: Storage::default(),
        subnets: like.subnets.clone(),
        images: like.images.clone(),
        deprecated: like.deprecated.clone(),
        pace: like.pace,
        habits: like.habits,
        buckets: Buckets::default(),
    }
}

/// The earth, shared by the provider and the test.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Earth>>);

impl Shared {
    pub fn new(earth: Earth) -> Self {
        Self(Arc::new(Mutex::new(earth)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Earth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One effect of the provider. If the provider crashes, this never returns, and the driver of
    /// the reconcile drops it.
    pub async fn effect<T, F>(&self, name: &str, take_place: F) -> T
    where
        F: FnOnce(&mut Earth) -> T + Send,
    {
        let how = self.lock().next_stop(name);
        match how {
            None => take_place(&mut self.lock()),
            Some(How::Pauses) => {
                self.lock().is_paused = true;
                futures::pending!();
                take_place(&mut self.lock())
            }
            Some(How::DiesBefore) => std::future::pending().await,
            Some(How::DiesAfter) => {
                drop(take_place(&mut self.lock()));
                std::future::pending().await
            }
        }
    }
}
