//! A pool: what it should be, and what is.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::{ColdOfferings, Group, GroupRules, Instance, Offering};

/// How long after the last call an instance may stay out of EC2's lists before
/// the launch counts as failed, whatever EC2 answered. EC2 is eventually
/// consistent: a describe right after a launch may not show the instance,
/// commonly for seconds, at worst for minutes.
const UNSEEN_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// How long after the last call a launch with no answer keeps its pool from
/// being released.
const UNANSWERED_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// What a pool should be.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The pool's UID, which its instances and its group carry as a tag.
    pub pool_uid: String,
    /// Whether everything should go.
    pub deleted: bool,
    /// How many instances.
    pub size: Size,
    /// What may be launched, most wanted first.
    pub offerings: Vec<Offering>,
    /// The instances' security groups.
    pub groups: SecurityGroups,
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
    /// How many instances should run while `leased` of them are in use.
    pub fn target(self, leased: u32) -> u32 {
        leased
            .saturating_add(self.idle)
            .clamp(self.minimum.min(self.maximum), self.maximum)
    }
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

/// What is.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Every instance with the pool's tags that EC2 lists, dead ones too.
    pub instances: Vec<Instance>,
    /// Launches that were decided on and whose instance EC2 does not list.
    pub launches: Vec<Launch>,
    /// The highest launch number ever used.
    pub launch_generation: u64,
    /// The groups with the pool's tag: one, or one per VPC it ever was in.
    pub groups: Vec<Group>,
    /// Until when EC2 may have a group of the pool that it does not list yet.
    pub group_in_doubt_until: Option<Timestamp>,
    /// What EC2 refused of late.
    pub cold: ColdOfferings,
    /// No launch before this: the last one failed for a reason that another
    /// offering does not cure.
    pub hold_launches_until: Option<Timestamp>,
}

impl Observed {
    /// Forgets the launches whose instance EC2 lists by now, and learns the
    /// launch numbers that EC2 knows of: a status that was lost or restored
    /// must never make a number, and so a token, come back.
    pub fn settle(&mut self) {
        let listed: BTreeSet<u64> = self.instances.iter().map(|i| i.launch).collect();
        self.launches.retain(|l| !listed.contains(&l.launch));
        let pending = self.launches.iter().map(|l| l.launch);
        let highest = pending.chain(listed.iter().copied()).max().unwrap_or(0);
        self.launch_generation = self.launch_generation.max(highest);
    }

    /// The pool's own group in a VPC.
    pub fn group_in(&self, vpc_id: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.vpc_id == vpc_id)
    }
}

/// A launch that was decided on. It is persisted before EC2 is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its number, unique within the pool.
    pub launch: u64,
    /// The slot it fills.
    pub slot: u32,
    /// What is launched.
    pub offering: Offering,
    /// When EC2 was last asked for it, or is about to be.
    pub decided_at: Timestamp,
    /// EC2's answer, while the instance is not listed yet.
    pub instance_id: Option<String>,
}

impl Launch {
    /// Whether EC2 should list the instance by now, if there were one. A deleted
    /// pool asks for nothing any more and waits less for an answer.
    pub fn is_overdue(&self, deleted: bool, now: Timestamp) -> bool {
        let limit = if deleted && self.instance_id.is_none() {
            UNANSWERED_LIMIT
        } else {
            UNSEEN_LIMIT
        };
        now.duration_since(self.decided_at) >= limit
    }
}
