//! A pool: what it should be, and what is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::token::digest;
use crate::{
    Group, GroupRules, Home, Instance, InstanceState, Launch, Notice, ObservedHome, Offering,
    OnDelete, TypePreference, UnavailableOfferings, VolumeState,
};

/// What a pool should be.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The pool's UID, which its instances and its group carry as a tag.
    pub pool_uid: String,
    /// Whether everything should go.
    pub deleted: bool,
    /// How many instances.
    pub size: Size,
    /// A digest of all that instances are launched from, but their groups.
    pub template: String,
    /// What may be launched, most wanted first.
    pub offerings: Vec<Offering>,
    /// In which order types are asked for.
    pub preference: TypePreference,
    /// Where instances may be.
    pub spread: Spread,
    /// How long spot capacity is waited for before on-demand offerings are used.
    pub fallback_after: SignedDuration,
    /// Which instances are replaced although they run.
    pub replace: Replace,
    /// The instances' security groups.
    pub groups: SecurityGroups,
    /// Who has, or waits for, one of the instances.
    pub leases: Vec<Lease>,
    /// Whether a deleted pool ends leased instances too.
    pub force: bool,
    /// The volume whose files outlive the instances.
    pub home: Option<Home>,
    /// From when on no instance is wanted that no lease has, whatever the size.
    pub ends_at: Option<Timestamp>,
}

impl Desired {
    /// Whether its time is over.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }

    /// Whether nothing is to run, whatever else the spec says.
    pub fn wants_none(&self, now: Timestamp) -> bool {
        self.size.maximum == 0 || self.has_ended(now)
    }

    /// Names the launch template of instances in these groups: the same name is the
    /// same content, and an instance with another one has drifted.
    pub fn generation(&self, group_ids: &[String]) -> String {
        let parts = std::iter::once(self.template.as_str());
        let mut hex = digest(parts.chain(group_ids.iter().map(String::as_str)));
        hex.truncate(16);
        hex
    }

    /// The groups of new instances; none while the pool's own does not exist.
    pub fn group_ids(&self, observed: &Observed) -> Option<Vec<String>> {
        match &self.groups {
            SecurityGroups::Given(ids) => Some(ids.clone()),
            SecurityGroups::Owned { vpc_id, .. } => observed
                .group_in(vpc_id)
                .map(|group| vec![group.id.clone()]),
        }
    }

    /// The leases that go on.
    pub fn open_leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(|lease| !lease.is_over)
    }
}

/// How many instances a pool keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Never fewer.
    pub minimum: u32,
    /// Never more.
    pub maximum: u32,
    /// Beyond those in use.
    pub idle: u32,
}

impl Size {
    /// Of a pool that has ended.
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

/// How a pool is spread, so that one unavailable offering does not take all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Whether zones hold equal numbers, as far as they have capacity.
    pub zones: bool,
    /// At most so many instances of one type in one zone.
    pub per_offering: Option<u32>,
}

/// Which running instances make way for another one. None that is leased does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replace {
    /// Those launched from another spec.
    pub drifted: bool,
    /// Those that fail EC2's status checks.
    pub impaired: bool,
    /// What a rebalance recommendation means.
    pub rebalance: Rebalance,
    /// Those on demand, where spot is wanted, after so long.
    pub on_demand_after: Option<SignedDuration>,
    /// How many at once.
    pub at_once: u32,
}

impl Default for Replace {
    fn default() -> Self {
        Self {
            drifted: false,
            impaired: false,
            rebalance: Rebalance::Ignore,
            on_demand_after: None,
            at_once: 1,
        }
    }
}

/// What a rebalance recommendation means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rebalance {
    /// Nothing.
    #[default]
    Ignore,
    /// The instance is not handed out any more.
    Cordon,
    /// It is replaced, too.
    Replace,
}

/// Whose security groups the instances get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityGroups {
    /// One of the provider's, with these rules, in this VPC.
    Owned {
        /// The VPC of the subnets.
        vpc_id: String,
        /// What it lets in.
        rules: GroupRules,
    },
    /// Somebody else's, never changed.
    Given(Vec<String>),
}

/// Somebody's claim on one instance of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its UID.
    pub uid: String,
    /// For people.
    pub name: String,
    /// Whether its instance may go: it is deleted, or expired.
    pub is_over: bool,
    /// A digest of what its instance is told of it.
    pub digest: String,
}

/// What is.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Every instance with the pool's tags that EC2 lists, dead ones too.
    pub instances: Vec<Instance>,
    /// Launches that were decided on and whose instances EC2 does not all list.
    pub launches: Vec<Launch>,
    /// The highest launch number ever used.
    pub launch_generation: u64,
    /// Launch templates that EC2 may have.
    pub templates: BTreeSet<String>,
    /// Which instance each lease has, by the lease's UID. An instance that was
    /// ever given out is nobody else's.
    pub bindings: BTreeMap<String, String>,
    /// What AWS announced, by instance id.
    pub notices: BTreeMap<String, Notice>,
    /// Instances that fail EC2's status checks for long enough.
    pub impaired: BTreeSet<String>,
    /// Since when the pool has lacked spot capacity.
    pub spot_short_since: Option<Timestamp>,
    /// The groups with the pool's tag: one, or one per VPC it ever was in.
    pub groups: Vec<Group>,
    /// Until when EC2 may have a group of the pool that it does not list yet.
    pub group_in_doubt_until: Option<Timestamp>,
    /// What EC2 refused of late.
    pub unavailable: UnavailableOfferings,
    /// No launch before this: the last one failed for a reason that another
    /// offering does not cure.
    pub hold_launches_until: Option<Timestamp>,
    /// The home volume.
    pub home: ObservedHome,
}

impl Observed {
    /// Forgets the launches whose instances EC2 lists by now, and what was known of
    /// instances that are gone; learns the launch numbers that EC2 knows of: a
    /// status that was lost or restored must never make a number, and so a token,
    /// come back. What a tag says of a lease is believed where no status does.
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
        // What one list leaves out is not gone.
        let is_dead = |id: &String| {
            let found = instances.iter().find(|i| i.id == *id);
            found.is_some_and(|i| !i.state.is_live())
        };
        self.bindings.retain(|_, id| !is_dead(id));
        self.notices.retain(|id, _| !is_dead(id));
        self.impaired.retain(|id| !is_dead(id));
        self.home.settle();
    }

    /// Whether a plan depends on the snapshots of the home: while it is copied.
    pub fn needs_snapshots(&self, desired: &Desired) -> bool {
        let Some(record) = self.home.record.as_ref().filter(|_| desired.deleted) else {
            return self.home.is_changing();
        };
        let is_wanted = |home: &Home| home.on_delete == OnDelete::Snapshot;
        desired.home.as_ref().is_some_and(is_wanted) || record.is_copy()
    }

    /// The instance that runs and can use the home.
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

    /// The lease that an instance was given to, ended or not: as the status says, or
    /// as its tag does.
    pub fn lease_of(&self, instance_id: &str) -> Option<&str> {
        let mut bindings = self.bindings.iter();
        let binding = bindings.find(|(_, id)| *id == instance_id);
        let mut instances = self.instances.iter();
        let tagged = || instances.find(|i| i.id == instance_id)?.lease.as_ref();
        let lease = binding.map(|(lease, _)| lease).or_else(tagged);
        lease.map(String::as_str)
    }
}
