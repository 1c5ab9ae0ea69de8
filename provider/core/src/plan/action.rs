//! A plan as data: its actions, their reasons, and its waits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::{GroupRules, HomeRecord, HomeWait, Launch};

/// The actions to carry out in order, and what the pool waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many instances should run.
    pub target: u32,
    /// The actions, in the order in which they are carried out: by their phases.
    pub actions: Vec<Action>,
    /// What else has to happen before the pool is as desired.
    pub waits: Vec<Wait>,
    /// Since when the pool has lacked spot capacity. The provider keeps it in the status.
    pub spot_short_since: Option<Timestamp>,
}

/// The steps in which a plan is carried out, in this order. Each has its own rule for errors of EC2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The status forgets launches. It needs no call.
    Forget,
    /// Instances end. One that does not end keeps new launches of this plan from happening, because
    /// they may need its room.
    End,
    /// Leases get instances, and keys are written. An error concerns this instance only.
    HandOut,
    /// The security group is made as desired. An error keeps the launches from happening.
    PrepareGroup,
    /// Instances are launched. An error that concerns every launch ends the phase.
    Launch,
    /// The home changes. An error concerns the home only.
    Home,
    /// What nothing uses any more is deleted. An error concerns this resource only.
    Tidy,
}

/// One effect. It leaves no decision to the code that carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the pool's security group.
    CreateGroup {
        /// The VPC of the group.
        vpc_id: String,
        /// The rules of the group.
        rules: GroupRules,
    },
    /// Change the group's ingress rules to the desired ones.
    SetGroupRules {
        /// The group.
        group_id: String,
        /// Rules to add.
        authorize: GroupRules,
        /// Rules to take away.
        revoke: GroupRules,
        /// Rules to take away that the provider did not make, by id.
        revoke_ids: BTreeSet<String>,
    },
    /// Start instances. The provider persists the launch, with the time of the call, before it
    /// calls EC2. A launch that is already persisted is repeated with the same token.
    Launch(Launch),
    /// Remove a launch from the status: EC2 has no instance of it.
    Forget {
        /// The number of the launch.
        launch: u64,
    },
    /// Give an instance to a lease, or update the instance's tags after the lease changed. The
    /// provider persists the binding before it tags the instance.
    Bind {
        /// The lease's UID.
        lease: String,
        /// EC2's id.
        instance_id: String,
    },
    /// Change the public keys that may log in to an instance.
    Authorize {
        /// EC2's id.
        instance_id: String,
        /// The tags to write, by tag key. An empty value takes a key away.
        tags: BTreeMap<String, String>,
    },
    /// Terminate an instance.
    Terminate {
        /// EC2's id.
        id: String,
        /// The reason, for the event.
        why: Disruption,
    },
    /// Delete a launch template that no launch uses any more.
    DeleteTemplate {
        /// The generation of the template.
        generation: String,
    },
    /// Delete the pool's security group.
    DeleteGroup {
        /// EC2's id.
        group_id: String,
    },
    /// Change the home. The provider writes the status before any of these actions.
    Home(HomeAction),
}

/// One effect on a pool's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeAction {
    /// Create the volume of this record. The provider persists the record before the call.
    Create(HomeRecord),
    /// Make the snapshot from which the volume of this record is copied. The provider persists the
    /// record before the call.
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
        /// The new size of the volume.
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
    /// Tag a volume as one that outlives its pool.
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
    /// Its lease is over. An instance that one lease had is given to no other lease.
    LeaseOver,
    /// Its termination was begun before, for this reason.
    Begun(String),
    /// It fails EC2's status checks.
    Impaired,
    /// It was launched from another spec, and its setup has not ended.
    NotSetUp,
    /// It booted another image than the one that the pool's owner asks for.
    OtherImage,
    /// It is stopped or cordoned, so that no lease can get it.
    Useless,
    /// It was launched from another spec.
    Drifted,
    /// AWS recommends to rebalance it.
    Rebalance,
    /// It runs on demand, and spot capacity replaces it.
    BackToSpot,
    /// The pool's time is over: see [`crate::Desired::ends_at`].
    Ended,
    /// The pool has more instances than it wants. The choice says why this one ends.
    Surplus(Choice),
}

/// Why the planner chose this instance among the surplus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// No other zone has more instances.
    CrowdedZone,
    /// No other type and zone has more instances.
    CrowdedOffering,
    /// No other type and market is less preferred.
    LeastWanted,
    /// No other instance is newer.
    Newest,
}

impl Disruption {
    /// Whether the instance is of no use, so that it ends before its replacement is launched.
    pub(super) fn is_broken(&self) -> bool {
        matches!(
            self,
            Self::Impaired | Self::NotSetUp | Self::OtherImage | Self::Useless
        )
    }
}

impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begun(why) => why,
            Self::PoolDeleted => "the pool is deleted",
            Self::LeaseOver => "its lease is over",
            Self::Impaired => "it fails EC2's status checks",
            Self::NotSetUp => "it was launched from another spec, and its setup has not ended",
            Self::OtherImage => "it booted another image than spec.forProvider.image.id",
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
    /// EC2 has to list, start or terminate instances.
    Instances,
    /// Every offering is unavailable: EC2 has to get capacity, or the account's limit has to be
    /// raised.
    Capacity {
        /// The time at which the first offering is tried again.
        until: Timestamp,
    },
    /// Spot has to get capacity before the planner uses on-demand offerings.
    Fallback {
        /// The time at which the planner uses on-demand offerings.
        until: Timestamp,
    },
    /// The last launch failed for a reason that no other offering cures, and is tried again.
    Retry {
        /// The time of the next try.
        until: Timestamp,
    },
    /// A person stopped these instances, and has to start or terminate them.
    Stopped {
        /// EC2's ids of the instances.
        ids: Vec<String>,
    },
    /// These instances lost the pool's tags. A person has to put the tags back, or terminate them.
    Untagged {
        /// EC2's ids of the instances.
        ids: Vec<String>,
    },
    /// EC2 shows no trace of these instances. It has to show them again, or not for some minutes.
    Missing {
        /// EC2's ids of the instances.
        ids: Vec<String>,
    },
    /// AWS has to reclaim these instances, as it announced.
    Interrupted {
        /// EC2's ids of the instances.
        ids: Vec<String>,
    },
    /// An instance has to reach the age at which it is replaced.
    Age {
        /// The time at which it reaches that age.
        until: Timestamp,
    },
    /// These instances are to be replaced, but the pool may neither grow nor shrink for that.
    Room {
        /// EC2's ids of the instances.
        ids: Vec<String>,
    },
    /// Another type or zone is needed: every available offering has as many instances as the spread
    /// allows.
    Spread,
    /// The leases of a deleted pool have to end.
    Leases {
        /// EC2's ids of the leased instances.
        ids: Vec<String>,
    },
    /// The home has to change: see [`HomeWait`].
    Home(HomeWait),
}

impl Action {
    /// The step in which the action is carried out.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Forget { .. } => Phase::Forget,
            Self::Terminate { .. } => Phase::End,
            Self::Bind { .. } | Self::Authorize { .. } => Phase::HandOut,
            Self::CreateGroup { .. } | Self::SetGroupRules { .. } => Phase::PrepareGroup,
            Self::Launch(_) => Phase::Launch,
            Self::Home(_) => Phase::Home,
            Self::DeleteTemplate { .. } | Self::DeleteGroup { .. } => Phase::Tidy,
        }
    }
}

impl Plan {
    /// The actions of one step.
    pub fn of(&self, phase: Phase) -> impl Iterator<Item = &Action> {
        let actions = self.actions.iter();
        actions.filter(move |action| action.phase() == phase)
    }

    /// Puts the actions into the order of their phases. Within a phase the planner's order stays.
    pub(super) fn in_order(mut self) -> Self {
        self.actions.sort_by_key(Action::phase);
        self
    }

    /// Whether a deleted pool has nothing left to do or to wait for.
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
