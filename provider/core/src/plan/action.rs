//! A plan as data: what it does, why, and what it waits for.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use crate::{GroupRules, HomeRecord, HomeWait, Launch};

/// What to do, in order, and what is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many instances should run.
    pub target: u32,
    /// What to do, in this order.
    pub actions: Vec<Action>,
    /// What else has to happen before the pool is as desired.
    pub waits: Vec<Wait>,
    /// Since when the pool has lacked spot capacity; to be remembered.
    pub spot_short_since: Option<Timestamp>,
}

/// One effect. It leaves no choice to whoever carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the pool's security group.
    CreateGroup {
        /// Where.
        vpc_id: String,
        /// With what rules.
        rules: GroupRules,
    },
    /// Bring the group's ingress rules in line.
    SetGroupRules {
        /// The group.
        group_id: String,
        /// Rules to add.
        authorize: GroupRules,
        /// Rules to take away.
        revoke: GroupRules,
        /// Rules of somebody else to take away, by id.
        revoke_ids: BTreeSet<String>,
    },
    /// Start instances. The launch is persisted before the call, with the time
    /// of this call; one that is persisted already is repeated with the same
    /// token.
    Launch(Launch),
    /// Strike a launch off: EC2 has no instance for it.
    Forget {
        /// Its number.
        launch: u64,
    },
    /// Give an instance to a lease, or tell it what has changed of the lease. The
    /// binding is persisted before the instance is tagged.
    Bind {
        /// The lease's UID.
        lease: String,
        /// EC2's id.
        instance_id: String,
    },
    /// Terminate an instance.
    Terminate {
        /// EC2's id.
        id: String,
        /// Why, for the event.
        why: Disruption,
    },
    /// Delete a launch template that nothing is launched from any more.
    DeleteTemplate {
        /// Its generation.
        generation: String,
    },
    /// Delete the pool's security group.
    DeleteGroup {
        /// EC2's id.
        group_id: String,
    },
    /// Do something to the home. The status is written before, whatever it is.
    Home(HomeAction),
}

/// One effect on a pool's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeAction {
    /// Make the volume of this record, which is persisted before the call.
    Create(HomeRecord),
    /// Make the snapshot that the volume of this record is a copy by. The record is
    /// persisted before the call.
    Copy(HomeRecord),
    /// Attach a volume.
    Attach {
        /// EC2's id of the volume.
        volume_id: String,
        /// EC2's id of the instance.
        instance_id: String,
    },
    /// Make a volume larger.
    Grow {
        /// EC2's id.
        volume_id: String,
        /// Its next size.
        size_gib: u32,
    },
    /// Delete a volume.
    DeleteVolume {
        /// EC2's id.
        volume_id: String,
    },
    /// Delete a snapshot.
    DeleteSnapshot {
        /// EC2's id.
        snapshot_id: String,
    },
    /// Tell by a tag that a volume outlives its pool.
    Keep {
        /// EC2's id.
        volume_id: String,
    },
}

/// Why an instance is terminated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// The pool is deleted.
    PoolDeleted,
    /// Its lease is over: nobody gets a machine that somebody else had.
    LeaseOver,
    /// It fails EC2's status checks.
    Impaired,
    /// It is stopped or cordoned, so that no lease can have it.
    Useless,
    /// It was launched from another spec.
    Drifted,
    /// AWS recommends it.
    Rebalance,
    /// It runs on demand, and spot is wanted.
    BackToSpot,
    /// The pool's time is over.
    Ended,
    /// The pool has more instances than it wants; why this one.
    Surplus(Choice),
}

/// Why this instance is the one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// No other zone has more of them.
    CrowdedZone,
    /// No other type and zone has more of them.
    CrowdedOffering,
    /// No other was wanted less.
    LeastWanted,
    /// No other is newer.
    Newest,
}

impl Disruption {
    /// Whether the instance is of no use, so that ending it takes nothing away.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self, Self::Impaired | Self::Useless)
    }
}

impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PoolDeleted => "the pool is deleted",
            Self::LeaseOver => "its lease is over",
            Self::Impaired => "it fails EC2's status checks",
            Self::Useless => "no lease can be given it",
            Self::Drifted => "it was launched from another spec",
            Self::Rebalance => "AWS recommends to rebalance it",
            Self::BackToSpot => "it runs on demand, and spot capacity replaces it",
            Self::Ended => "the pool's time is over (spec.forProvider.endsAt)",
            Self::Surplus(Choice::CrowdedZone) => {
                "the pool has more instances than it wants, most of them in this zone"
            }
            Self::Surplus(Choice::CrowdedOffering) => {
                "the pool has more instances than it wants, most of them of this type and zone"
            }
            Self::Surplus(Choice::LeastWanted) => {
                "the pool has more instances than it wants, and wanted this type and market least"
            }
            Self::Surplus(Choice::Newest) => {
                "the pool has more instances than it wants, and this is the newest"
            }
        })
    }
}

/// What a plan waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For EC2 to list, start or terminate instances.
    Instances,
    /// For an offering to have capacity, or a limit to be raised: every offering
    /// rests until then.
    Capacity {
        /// When the first of them is tried again.
        until: Timestamp,
    },
    /// For spot capacity, before on-demand offerings are used.
    Fallback {
        /// When they are.
        until: Timestamp,
    },
    /// For the next try after a failure that no other offering cures.
    Retry {
        /// When.
        until: Timestamp,
    },
    /// For a person: somebody stopped these instances.
    Stopped {
        /// Their ids.
        ids: Vec<String>,
    },
    /// For AWS to take these back, as it announced.
    Interrupted {
        /// Their ids.
        ids: Vec<String>,
    },
    /// For the next instance to become older: it is replaced then.
    Age {
        /// When.
        until: Timestamp,
    },
    /// For room: these are to be replaced, and the pool may neither grow for it nor
    /// shrink.
    Room {
        /// Their ids.
        ids: Vec<String>,
    },
    /// For another type or zone: of every one that sells there are as many as the
    /// spread allows.
    Spread,
    /// For leases of a deleted pool to end.
    Leases {
        /// The instances.
        ids: Vec<String>,
    },
    /// For something about the home.
    Home(HomeWait),
}

impl Plan {
    /// Whether a deleted pool has left nothing behind.
    pub fn is_released(&self) -> bool {
        self.actions.is_empty() && self.waits.is_empty()
    }
}

pub(super) fn terminate(id: &str, why: Disruption) -> Action {
    Action::Terminate {
        id: id.to_owned(),
        why,
    }
}
