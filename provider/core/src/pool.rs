//! The desired and the observed state of a pool.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::token::digest;
use crate::{
    Group, GroupRules, Home, Instance, InstanceState, Launch, Notice, ObservedHome, Offering,
    OnDelete, ScheduledEvent, TypePreference, UnavailableOfferings, VolumeState,
};

/// The desired state of a pool.
#[derive(Clone, Debug)]
pub struct Desired {
    /// UID of the pool, which its instances and its group carry as a tag.
    pub pool_uid: String,
    /// Whether the pool is deleted.
    pub deleted: bool,
    /// How many instances the pool keeps.
    pub size: Size,
    /// A digest of everything that instances are launched from, except their security groups.
    pub template: String,
    /// The offerings that may be launched, most preferred first.
    pub offerings: Vec<Offering>,
    /// The order in which the planner asks for instance types.
    pub preference: TypePreference,
    /// How the instances are spread over zones and offerings.
    pub spread: Spread,
    /// How long the planner waits for spot capacity before it uses on-demand offerings.
    pub fallback_after: SignedDuration,
    /// Which running instances are replaced.
    pub replace: Replace,
    /// The instances' security groups.
    pub groups: SecurityGroups,
    /// The pool's leases: those with an instance, those that wait for one, and those that are over.
    pub leases: Vec<Lease>,
    /// Whether a deleted pool ends leased instances too.
    pub force: bool,
    /// The image of new instances; none while it is not known what instances are launched from.
    pub image_id: Option<String>,
    /// The tags with the public keys that may log in to every instance, by tag key; none if the pool
    /// decides nothing about keys.
    pub authorized_keys: Option<BTreeMap<String, String>>,
    /// The home volume, whose files outlive the instances.
    pub home: Option<Home>,
    /// From this time on the pool keeps only leased instances, whatever its size is.
    pub ends_at: Option<Timestamp>,
}

impl Desired {
    /// Whether `ends_at` has passed.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }

    /// Whether the pool wants no instance: its maximum is 0, or its time is over.
    pub fn wants_none(&self, now: Timestamp) -> bool {
        self.size.maximum == 0 || self.has_ended(now)
    }

    /// The name of the launch template for instances in these groups. The same name means the same
    /// content, and an instance with another name has drifted.
    pub fn generation(&self, group_ids: &[String]) -> String {
        let parts = std::iter::once(self.template.as_str());
        let mut hex = digest(parts.chain(group_ids.iter().map(String::as_str)));
        hex.truncate(16);
        hex
    }

    /// The groups of new instances. `None` while the pool's own group does not exist, and while it
    /// is not known what instances are launched from.
    pub fn group_ids(&self, observed: &Observed) -> Option<Vec<String>> {
        match &self.groups {
            SecurityGroups::Unknown => None,
            SecurityGroups::Given(ids) => Some(ids.clone()),
            SecurityGroups::Owned { vpc_id, .. } => observed
                .group_in(vpc_id)
                .map(|group| vec![group.id.clone()]),
        }
    }

    /// The leases that are not over.
    pub fn open_leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(|lease| !lease.is_over)
    }
}

/// How many instances a pool keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The target is never lower than this, unless the maximum is.
    pub minimum: u32,
    /// The target is never higher than this.
    pub maximum: u32,
    /// The number of instances to keep in addition to those in use.
    pub idle: u32,
}

impl Size {
    /// The size of a pool that has ended.
    pub const NONE: Self = Self {
        minimum: 0,
        maximum: 0,
        idle: 0,
    };

    /// How many instances should run while `leased` of them are in use.
    pub fn target(self, leased: u32) -> u32 {
        leased
            .saturating_add(self.idle)
            .clamp(self.minimum.min(self.maximum), self.maximum)
    }
}

/// How a pool's instances are spread, so that one unavailable offering does not take all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Whether zones hold equal numbers of instances, as far as they have capacity.
    pub zones: bool,
    /// The most instances of one type in one zone.
    pub per_offering: Option<u32>,
}

/// Which running instances are replaced. A leased instance never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Replace {
    /// Replace instances that were launched from another spec.
    pub drifted: bool,
    /// Replace instances that were launched from another spec and whose setup has not ended.
    pub not_set_up: bool,
    /// Replace instances that booted another image.
    pub other_image: bool,
    /// Replace instances that fail EC2's status checks.
    pub impaired: bool,
    /// The reaction to a rebalance recommendation.
    pub rebalance: Rebalance,
    /// Replace on-demand instances of this age where the pool wants spot.
    pub on_demand_after: Option<SignedDuration>,
    /// How many instances are replaced at a time.
    pub at_once: u32,
}

impl Default for Replace {
    fn default() -> Self {
        Self {
            drifted: false,
            not_set_up: false,
            other_image: false,
            impaired: false,
            rebalance: Rebalance::Ignore,
            on_demand_after: None,
            at_once: 1,
        }
    }
}

/// The reaction to a rebalance recommendation of AWS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rebalance {
    /// The pool ignores the recommendation.
    #[default]
    Ignore,
    /// The instance is given to no further lease.
    Cordon,
    /// The instance is replaced.
    Replace,
}

/// The security groups that the instances get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityGroups {
    /// It is not known what instances are launched from: the spec is invalid, EC2 did not answer,
    /// or the pool is deleted. Nothing is launched, and no instance has drifted from it.
    Unknown,
    /// A group that the provider owns, with these rules, in this VPC.
    Owned {
        /// The VPC of the subnets.
        vpc_id: String,
        /// The rules of the group.
        rules: GroupRules,
    },
    /// Ids of groups that others own. The provider never changes them.
    Given(Vec<String>),
}

/// A claim on one instance of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// UID of the lease.
    pub uid: String,
    /// Name of the lease, for messages.
    pub name: String,
    /// Whether its instance may end: the lease is deleted, or expired.
    pub is_over: bool,
    /// A digest of the tags that tell its instance about the lease.
    pub digest: String,
}

/// The observed state of a pool.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Every instance with the pool's tags that EC2 lists, including terminated ones.
    pub instances: Vec<Instance>,
    /// Persisted launches whose instances EC2 does not all list.
    pub launches: Vec<Launch>,
    /// The highest launch number ever used.
    pub launch_generation: u64,
    /// Launch templates that EC2 may have.
    pub templates: BTreeSet<String>,
    /// The instance of each lease, by the lease's UID. An instance that was ever given to a lease
    /// is never given to another one.
    pub bindings: BTreeMap<String, String>,
    /// The instances whose termination was begun, with the reason. They are used for nothing any
    /// more.
    pub ending: BTreeMap<String, String>,
    /// AWS's announcements, by instance id.
    pub notices: BTreeMap<String, Notice>,
    /// The next event that AWS has scheduled, by instance id.
    pub scheduled: BTreeMap<String, ScheduledEvent>,
    /// Instances that have failed EC2's status checks for long enough.
    pub impaired: BTreeSet<String>,
    /// Instances whose console has not shown the end of their setup.
    pub not_set_up: BTreeSet<String>,
    /// Instances that EC2 did not terminate a moment ago. They use up the maximum, and are not
    /// terminated again in this pass.
    pub unended: BTreeSet<String>,
    /// Instances that run without the pool's tags, because somebody took the tags away. They count,
    /// and the provider does not touch them.
    pub untagged: BTreeSet<String>,
    /// Since when EC2 shows no trace of an instance, by id. Such an instance counts for some
    /// minutes.
    pub missing_since: BTreeMap<String, Timestamp>,
    /// The zones of which EC2 told nothing, while it does not list all instances of the region at
    /// once. None while it does.
    pub zones_down: Option<BTreeSet<String>>,
    /// Since when the pool has lacked spot capacity.
    pub spot_short_since: Option<Timestamp>,
    /// The groups with the pool's tag: one for each VPC that the pool has ever used.
    pub groups: Vec<Group>,
    /// Whether EC2's groups were never listed: `groups` says nothing then.
    pub are_groups_unseen: bool,
    /// Until this time EC2 may have a group of the pool that it does not list yet.
    pub group_in_doubt_until: Option<Timestamp>,
    /// The offerings that EC2 refused recently.
    pub unavailable: UnavailableOfferings,
    /// No launch before this time: the last one failed for a reason that another offering does not
    /// cure.
    pub hold_launches_until: Option<Timestamp>,
    /// How many launches in a row failed for such a reason.
    pub launch_failures: u32,
    /// The home volume.
    pub home: ObservedHome,
}

impl Observed {
    /// Applies what EC2's list proves.
    ///
    /// It removes the launches whose instances EC2 lists, and everything known about instances that
    /// are gone. It raises the launch generation to the highest number that EC2 lists: after a
    /// status was lost or restored, no launch number, and so no token, may be used again. Where the
    /// status has no binding for a lease, the tag of an instance counts.
    pub fn settle(&mut self) {
        let instances = &self.instances;
        self.launches
            .retain(|launch| launch.unlisted(instances) > 0);
        let pending = self.launches.iter().map(|l| l.launch);
        let listed = instances.iter().map(|i| i.launch);
        let highest = pending.chain(listed).max().unwrap_or(0);
        self.launch_generation = self.launch_generation.max(highest);
        for instance in instances.iter().filter(|i| i.state.is_live()) {
            if let Some(lease) = instance.lease.clone() {
                let id = || instance.id.clone();
                self.bindings.entry(lease).or_insert_with(id);
            }
        }
        // An instance that is missing from one list is not proven gone: EC2's lists are eventually
        // consistent.
        let is_dead = |id: &String| {
            let found = instances.iter().find(|i| i.id == *id);
            found.is_some_and(|i| !i.state.is_live())
        };
        self.bindings.retain(|_, id| !is_dead(id));
        self.ending.retain(|id, _| !is_dead(id));
        self.notices.retain(|id, _| !is_dead(id));
        self.scheduled.retain(|id, _| !is_dead(id));
        self.impaired.retain(|id| !is_dead(id));
        self.not_set_up.retain(|id| !is_dead(id));
        self.unended.retain(|id| !is_dead(id));
        self.untagged.retain(|id| !is_dead(id));
        self.home.settle();
    }

    /// Whether the provider can do nothing with an instance, although it counts: EC2 shows no trace
    /// of it, or it lacks the pool's tags.
    pub fn is_out_of_reach(&self, instance_id: &str) -> bool {
        self.untagged.contains(instance_id) || self.missing_since.contains_key(instance_id)
    }

    /// Whether an instance keeps running although it should end: EC2 did not terminate it in this
    /// pass, or the provider cannot reach it.
    pub fn stays(&self, instance_id: &str) -> bool {
        self.unended.contains(instance_id) || self.is_out_of_reach(instance_id)
    }

    /// Removes what is known of instances that EC2 does not have.
    pub fn forget(&mut self, gone: &BTreeSet<String>) {
        self.bindings.retain(|_, id| !gone.contains(id));
        self.ending.retain(|id, _| !gone.contains(id));
    }

    /// Whether a plan depends on the snapshots of the home: while the home is copied, and when a
    /// deleted pool keeps its home as a snapshot.
    pub fn needs_snapshots(&self, desired: &Desired) -> bool {
        let Some(record) = self.home.record.as_ref().filter(|_| desired.deleted) else {
            return self.home.is_changing();
        };
        let is_wanted = |home: &Home| home.on_delete == OnDelete::Snapshot;
        desired.home.as_ref().is_some_and(is_wanted) || record.is_copy()
    }

    /// The running instance that has the home attached and can use it.
    pub fn at_home(&self) -> Option<&Instance> {
        let volume = self.home.volume()?;
        let attachment = volume.attachment.as_ref().filter(|a| a.is_attached)?;
        let mut running = self.instances.iter();
        let running =
            running.find(|i| i.id == attachment.instance_id && i.state == InstanceState::Running);
        running.filter(|_| volume.state == VolumeState::InUse)
    }

    /// The pool's own group in a VPC.
    pub fn group_in(&self, vpc_id: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.vpc_id == vpc_id)
    }

    /// Whether an instance of the latest launch runs: EC2 did what the pool asked for last.
    pub fn runs_latest_launch(&self) -> bool {
        let latest = |i: &&Instance| i.launch == self.launch_generation;
        let mut latest = self.instances.iter().filter(latest);
        latest.any(|i| i.state == InstanceState::Running)
    }

    /// The lease that an instance was given to, whether it is over or not. The status counts before
    /// the instance's tag.
    pub fn lease_of(&self, instance_id: &str) -> Option<&str> {
        let mut bindings = self.bindings.iter();
        let binding = bindings.find(|(_, id)| *id == instance_id);
        let mut instances = self.instances.iter();
        let tagged = || instances.find(|i| i.id == instance_id)?.lease.as_ref();
        let lease = binding.map(|(lease, _)| lease).or_else(tagged);
        lease.map(String::as_str)
    }
}
