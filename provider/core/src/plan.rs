//! The decision: which actions bring a pool from observed to desired.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use crate::{
    Desired, GroupRules, Instance, InstanceState, Launch, Market, Observed, Offering,
    SecurityGroups,
};

/// What to do, in order, and what is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many instances should run.
    pub target: u32,
    /// What to do, in this order.
    pub actions: Vec<Action>,
    /// What else has to happen before the pool is as desired.
    pub waits: Vec<Wait>,
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
    /// Start an instance. The launch is persisted before the call, with the time
    /// of this call; one that is persisted already is repeated with the same
    /// token.
    Launch(Launch),
    /// Strike a launch off: EC2 has no instance for it.
    Forget {
        /// Its number.
        launch: u64,
    },
    /// Terminate an instance.
    Terminate {
        /// EC2's id.
        id: String,
        /// Why, for the event.
        why: Victim,
    },
    /// Delete the pool's security group.
    DeleteGroup {
        /// EC2's id.
        group_id: String,
    },
}

/// Why an instance is terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The pool is deleted.
    PoolDeleted,
    /// The pool has more instances than it wants.
    Surplus,
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PoolDeleted => "the pool is deleted",
            Self::Surplus => "the pool has more instances than it wants",
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
}

impl Plan {
    /// Whether a deleted pool has left nothing behind.
    pub fn is_released(&self) -> bool {
        self.actions.is_empty() && self.waits.is_empty()
    }
}

/// Decides. `observed` must be settled (see [`Observed::settle`]).
pub fn plan(desired: &Desired, observed: &Observed, now: Timestamp) -> Plan {
    if desired.deleted {
        plan_deletion(observed, now)
    } else {
        plan_size(desired, observed, now)
    }
}

fn plan_deletion(observed: &Observed, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    let mut waiting = false;
    for instance in &observed.instances {
        if instance.state.fills_slot() {
            actions.push(terminate(&instance.id, Victim::PoolDeleted));
        } else if instance.state == InstanceState::ShuttingDown {
            waiting = true;
        }
    }
    for launch in &observed.launches {
        if launch.is_overdue(true, now) {
            actions.push(Action::Forget {
                launch: launch.launch,
            });
            continue;
        }
        waiting = true;
        if let Some(id) = &launch.instance_id {
            actions.push(terminate(id, Victim::PoolDeleted));
        }
    }
    let in_doubt = observed.group_in_doubt_until.is_some_and(|u| u > now);
    waiting |= in_doubt && observed.groups.is_empty();
    // EC2 refuses to delete a group that an instance still uses.
    if actions.is_empty() && !waiting {
        actions.extend(observed.groups.iter().map(|g| Action::DeleteGroup {
            group_id: g.id.clone(),
        }));
    }
    Plan {
        target: 0,
        actions,
        waits: waiting.then_some(Wait::Instances).into_iter().collect(),
    }
}

fn plan_size(desired: &Desired, observed: &Observed, now: Timestamp) -> Plan {
    let target = desired.size.target(0);
    let mut plan = Plan {
        target,
        actions: Vec::new(),
        waits: Vec::new(),
    };
    let group_exists = plan_group(desired, observed, &mut plan);

    let (gone, pending): (Vec<&Launch>, Vec<&Launch>) = observed
        .launches
        .iter()
        .partition(|l| l.is_overdue(false, now));
    plan.actions
        .extend(gone.iter().map(|l| Action::Forget { launch: l.launch }));

    let live: Vec<&Instance> = observed
        .instances
        .iter()
        .filter(|i| i.state.fills_slot())
        .collect();
    let have = live.len() + pending.len();
    let want = usize::try_from(target).unwrap_or(usize::MAX);
    let surplus = have.saturating_sub(want);

    // What EC2 does not list yet is newer than everything that it lists: it is
    // the surplus, and goes once it is listed.
    plan.actions.extend(
        victims(&live)
            .take(surplus.saturating_sub(pending.len()))
            .map(|i| terminate(&i.id, Victim::Surplus)),
    );
    let missing = want.saturating_sub(have);
    let repeats = if surplus > 0 {
        Vec::new()
    } else {
        repeats(desired, &pending, now)
    };
    match observed.hold_launches_until.filter(|until| *until > now) {
        Some(until) if missing > 0 || !repeats.is_empty() => plan.waits.push(Wait::Retry { until }),
        Some(_) => {}
        None => {
            plan.actions.extend(repeats);
            if missing > 0 && group_exists {
                plan_launches(desired, observed, &live, &pending, missing, now, &mut plan);
            }
        }
    }
    plan_waits(&live, &pending, &mut plan);
    plan
}

/// Plans the owned group; answers whether instances can be launched into it.
fn plan_group(desired: &Desired, observed: &Observed, plan: &mut Plan) -> bool {
    let SecurityGroups::Owned { vpc_id, rules } = &desired.groups else {
        return true;
    };
    let Some(group) = observed.group_in(vpc_id) else {
        plan.actions.push(Action::CreateGroup {
            vpc_id: vpc_id.clone(),
            rules: rules.clone(),
        });
        return false;
    };
    let authorize = rules.without(&group.rules);
    let revoke = group.rules.without(rules);
    if !authorize.is_empty() || !revoke.is_empty() || !group.foreign_rule_ids.is_empty() {
        plan.actions.push(Action::SetGroupRules {
            group_id: group.id.clone(),
            authorize,
            revoke,
            revoke_ids: group.foreign_rule_ids.clone(),
        });
    }
    true
}

/// The launches that nobody answered, once more. Those of an offering that the
/// spec does not name any more are left to show up or to be forgotten.
fn repeats(desired: &Desired, pending: &[&Launch], now: Timestamp) -> Vec<Action> {
    pending
        .iter()
        .filter(|l| l.instance_id.is_none() && desired.offerings.contains(&l.offering))
        .map(|l| {
            Action::Launch(Launch {
                decided_at: now,
                ..(*l).clone()
            })
        })
        .collect()
}

fn plan_launches(
    desired: &Desired,
    observed: &Observed,
    live: &[&Instance],
    pending: &[&Launch],
    missing: usize,
    now: Timestamp,
    plan: &mut Plan,
) {
    let Some(offering) = first_warm(desired, observed, now) else {
        let until = observed
            .cold
            .among(&desired.offerings, now)
            .map(|(_, cold)| cold.until)
            .min();
        plan.waits
            .extend(until.map(|until| Wait::Capacity { until }));
        return;
    };
    let used: BTreeSet<u32> = live
        .iter()
        .map(|i| i.slot)
        .chain(pending.iter().map(|l| l.slot))
        .collect();
    let free = (0..).filter(|slot| !used.contains(slot)).take(missing);
    let numbers = observed.launch_generation + 1..;
    plan.actions.extend(numbers.zip(free).map(|(launch, slot)| {
        Action::Launch(Launch {
            launch,
            slot,
            offering: offering.clone(),
            decided_at: now,
            instance_id: None,
        })
    }));
}

fn first_warm<'a>(
    desired: &'a Desired,
    observed: &Observed,
    now: Timestamp,
) -> Option<&'a Offering> {
    desired
        .offerings
        .iter()
        .find(|o| observed.cold.at(o, now).is_none())
}

fn plan_waits(live: &[&Instance], pending: &[&Launch], plan: &mut Plan) {
    use InstanceState::{Pending, Stopped, Stopping};
    if !pending.is_empty() || live.iter().any(|i| i.state == Pending) {
        plan.waits.push(Wait::Instances);
    }
    let stopped = live
        .iter()
        .filter(|i| matches!(i.state, Stopped | Stopping));
    let ids: Vec<String> = stopped.map(|i| i.id.clone()).collect();
    if !ids.is_empty() {
        plan.waits.push(Wait::Stopped { ids });
    }
}

/// Instances in the order in which a surplus is terminated: a second one in a
/// slot, then the dearer market, then the newest.
fn victims<'a>(live: &[&'a Instance]) -> impl Iterator<Item = &'a Instance> {
    let mut ordered: Vec<&Instance> = live.to_vec();
    ordered.sort_by_key(|i| (i.slot, i.launch));
    let mut slots = BTreeSet::new();
    let mut ranked: Vec<_> = ordered
        .into_iter()
        .map(|i| {
            let doubled = !slots.insert(i.slot);
            let dearer = i.offering.market == Market::OnDemand;
            ((doubled, dearer, i.launch), i)
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    ranked.into_iter().map(|(_, i)| i)
}

fn terminate(id: &str, why: Victim) -> Action {
    Action::Terminate {
        id: id.to_owned(),
        why,
    }
}
