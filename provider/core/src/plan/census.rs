//! Counts a pool's instances: every live one with its standing, and those that launches may still
//! bring.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Action, Disruption};
use crate::launch::count;
use crate::{
    Desired, Instance, InstanceState, Launch, Market, NoticeKind, Observed, Offering, Rebalance,
};

/// What an instance may be used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The instance counts, and a lease may get it.
    Good,
    /// The instance counts, but no lease gets it.
    Cordoned,
    /// A lease has the instance, or had it and may come back for it.
    Leased,
    /// AWS reclaims the instance. It does not count any more, and the provider must not end it.
    Interrupted,
    /// The lease of the instance is over, or its termination was begun: the instance ends at once.
    Over,
    /// The instance is to be replaced.
    Disrupted(Disruption),
}

/// The live instances and the launches of a pool.
pub(super) struct Census<'a> {
    /// Live instances, ordered by launch and id.
    pub(super) live: Vec<(&'a Instance, Standing)>,
    /// Launches that may still bring instances.
    pub(super) pending: Vec<&'a Launch>,
    /// Launches that bring no instance any more.
    pub(super) overdue: Vec<&'a Launch>,
    observed: &'a Observed,
}

impl<'a> Census<'a> {
    pub(super) fn take(desired: &Desired, observed: &'a Observed, now: Timestamp) -> Self {
        let generation = desired
            .group_ids(observed)
            .map(|groups| desired.generation(&groups));
        let live = observed.instances.iter().filter(|i| i.state.is_live());
        let mut live: Vec<_> = live
            .map(|i| {
                (
                    i,
                    standing(i, desired, observed, generation.as_deref(), now),
                )
            })
            .collect();
        live.sort_by_key(|(i, _)| (i.launch, &i.id));
        let (overdue, pending) = observed
            .launches
            .iter()
            .partition(|l| l.is_overdue(false, now));
        Self {
            live,
            pending,
            overdue,
            observed,
        }
    }

    /// Marks the instances of these bindings as leased.
    pub(super) fn lease(&mut self, bound: &[Action]) {
        for (instance, standing) in &mut self.live {
            let is_it = |action: &Action| matches!(action, Action::Bind { instance_id, .. } if *instance_id == instance.id);
            if bound.iter().any(is_it) {
                *standing = Standing::Leased;
            }
        }
    }

    /// Marks an instance as one that ends now.
    pub(super) fn end(&mut self, id: &str) {
        let mut live = self.live.iter_mut();
        if let Some((_, standing)) = live.find(|(i, _)| i.id == id) {
            *standing = Standing::Over;
        }
    }

    /// How many instances count: the live ones, and those that launches may still bring.
    pub(super) fn have(&self) -> u32 {
        let counts = |s: &Standing| !matches!(s, Standing::Interrupted | Standing::Over);
        let live = self.live.iter().filter(|(_, s)| counts(s)).count();
        count(live).saturating_add(self.on_their_way())
    }

    /// How many more instances the pool may have.
    pub(super) fn room(&self, maximum: u32) -> u32 {
        maximum.saturating_sub(self.have().saturating_add(self.stuck()))
    }

    /// How many instances should have ended and did not. They use up the maximum, although they do
    /// not count.
    pub(super) fn stuck(&self) -> u32 {
        let is_stuck =
            |(i, s): &&(&Instance, Standing)| *s == Standing::Over && self.observed.stays(&i.id);
        count(self.live.iter().filter(is_stuck).count())
    }

    /// How many instances EC2 may still bring.
    pub(super) fn on_their_way(&self) -> u32 {
        let pending = self.pending.iter();
        pending.map(|l| l.unlisted(&self.observed.instances)).sum()
    }

    /// The instances to replace, gravest cause first.
    pub(super) fn disrupted(&self) -> Vec<(&'a Instance, Disruption)> {
        let mut disrupted: Vec<_> = self
            .live
            .iter()
            .filter_map(|(i, standing)| match standing {
                Standing::Disrupted(why) => Some((*i, why.clone())),
                _ => None,
            })
            .collect();
        disrupted.sort_by_key(|(i, why)| (rank(why), i.launch));
        disrupted
    }

    /// How many instances are up and stay. A stopped one counts: a person stopped it, so no
    /// disrupted instance is kept in its place.
    pub(super) fn serving(&self) -> u32 {
        let serves = |(i, s): &&(&Instance, Standing)| {
            i.state != InstanceState::Pending
                && matches!(s, Standing::Good | Standing::Cordoned | Standing::Leased)
        };
        count(self.live.iter().filter(serves).count())
    }

    /// How many instances exist, or may come to exist, whose offering fulfils `is_it`.
    pub(super) fn population(&self, is_it: impl Fn(&Offering) -> bool) -> u32 {
        let counted = |s: &Standing| !matches!(s, Standing::Interrupted | Standing::Over);
        let live = self.live.iter().filter(|(_, s)| counted(s));
        let live = count(live.filter(|(i, _)| is_it(&i.offering)).count());
        let pending = self.pending.iter().map(|l| match &l.answer {
            Some(_) => {
                let promised = l.promised(&self.observed.instances);
                count(promised.filter(|one| is_it(&one.offering)).count())
            }
            None if l.offerings.iter().any(&is_it) => l.unlisted(&self.observed.instances),
            None => 0,
        });
        live.saturating_add(pending.sum())
    }

    /// How many replacements are under way: instances that start and that no lease waits for, or
    /// instances that shut down and that no lease had. The instances of leases come and go all the
    /// time in a busy pool, and delay no replacement.
    pub(super) fn replacing(&self, desired: &Desired) -> u32 {
        let served = self.live.iter().map(|(i, _)| self.observed.lease_of(&i.id));
        let served: BTreeSet<&str> = served.flatten().collect();
        let open = desired.open_leases();
        let waiting = open.filter(|lease| !served.contains(lease.uid.as_str()));
        let is_new = |(i, s): &&(&Instance, Standing)| {
            i.state == InstanceState::Pending && !matches!(s, Standing::Leased | Standing::Over)
        };
        let begun = count(self.live.iter().filter(is_new).count());
        let begun = begun.saturating_add(self.on_their_way());
        let ends = |i: &&Instance| i.state == InstanceState::ShuttingDown && i.lease.is_none();
        let ending = count(self.observed.instances.iter().filter(ends).count());
        let unclaimed = begun.saturating_sub(count(waiting.count()));
        unclaimed.max(ending)
    }

    /// Whether instances were launched at this very time, so in this reconcile.
    pub(super) fn has_just_launched(&self, now: Timestamp) -> bool {
        let mut live = self.live.iter();
        self.pending.iter().any(|l| l.decided_at >= now)
            || live.any(|(i, _)| i.launched_at.is_some_and(|at| at >= now))
    }

    /// The ids of the live instances that fulfil `is_it`.
    pub(super) fn ids(&self, is_it: impl Fn(&Instance, &Standing) -> bool) -> Vec<String> {
        let ids = self.live.iter().filter(|(i, s)| is_it(i, s));
        ids.map(|(i, _)| i.id.clone()).collect()
    }
}

/// The time at which spot capacity replaces an on-demand instance. `None` if it never does.
pub(super) fn back_to_spot_at(instance: &Instance, desired: &Desired) -> Option<Timestamp> {
    let after = desired.replace.on_demand_after?;
    let wants_spot = desired.offerings.iter().any(|o| o.market == Market::Spot);
    let is_dear = instance.offering.market == Market::OnDemand;
    let since = instance.launched_at?;
    (wants_spot && is_dear).then(|| since.saturating_add(after).unwrap_or(Timestamp::MAX))
}

fn standing(
    instance: &Instance,
    desired: &Desired,
    observed: &Observed,
    generation: Option<&str>,
    now: Timestamp,
) -> Standing {
    let notice = observed.notices.get(&instance.id);
    if notice.is_some_and(|n| n.is_interruption(now)) {
        return Standing::Interrupted;
    }
    if observed.ending.contains_key(&instance.id) {
        return Standing::Over;
    }
    if let Some(uid) = observed.lease_of(&instance.id) {
        let lease = desired.leases.iter().find(|lease| lease.uid == uid);
        let is_over = lease.is_some_and(|lease| lease.is_over);
        return if is_over {
            Standing::Over
        } else {
            Standing::Leased
        };
    }
    if observed.is_out_of_reach(&instance.id) {
        return Standing::Cordoned;
    }
    let is_unended = observed.unended.contains(&instance.id);
    match disrupted(instance, desired, observed, generation, now) {
        Some(_) if is_unended => Standing::Cordoned,
        Some(why) => Standing::Disrupted(why),
        None if is_cordoned(instance, desired, observed) => Standing::Cordoned,
        None => Standing::Good,
    }
}

fn disrupted(
    instance: &Instance,
    desired: &Desired,
    observed: &Observed,
    generation: Option<&str>,
    now: Timestamp,
) -> Option<Disruption> {
    use InstanceState::{Stopped, Stopping};
    let replace = desired.replace;
    let has_drifted = match (&instance.generation, generation) {
        (Some(own), Some(wanted)) => own != wanted,
        _ => false,
    };
    let has_other_image = desired.image_id.as_ref() != Some(&instance.image_id);
    let is_off = matches!(instance.state, Stopped | Stopping);
    let has_leases = desired.open_leases().next().is_some();
    if replace.impaired && observed.impaired.contains(&instance.id) {
        Some(Disruption::Impaired)
    } else if has_leases && (is_off || is_cordoned(instance, desired, observed)) {
        Some(Disruption::Useless)
    } else if replace.not_set_up && has_drifted && observed.not_set_up.contains(&instance.id) {
        Some(Disruption::NotSetUp)
    } else if replace.other_image && has_drifted && has_other_image {
        Some(Disruption::OtherImage)
    } else if replace.drifted && has_drifted {
        Some(Disruption::Drifted)
    } else if replace.rebalance == Rebalance::Replace && is_flagged(instance, observed) {
        Some(Disruption::Rebalance)
    } else if back_to_spot_at(instance, desired).is_some_and(|at| at <= now) {
        Some(Disruption::BackToSpot)
    } else {
        None
    }
}

fn is_cordoned(instance: &Instance, desired: &Desired, observed: &Observed) -> bool {
    let flagged = desired.replace.rebalance == Rebalance::Cordon && is_flagged(instance, observed);
    flagged || observed.impaired.contains(&instance.id)
}

fn is_flagged(instance: &Instance, observed: &Observed) -> bool {
    let notice = observed.notices.get(&instance.id);
    notice.is_some_and(|notice| notice.kind == NoticeKind::Rebalance)
}

fn rank(why: &Disruption) -> u8 {
    match why {
        Disruption::Impaired => 0,
        Disruption::NotSetUp => 1,
        Disruption::OtherImage => 2,
        Disruption::Useless => 3,
        Disruption::Drifted => 4,
        Disruption::Rebalance => 5,
        _ => 6,
    }
}
