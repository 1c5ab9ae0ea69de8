//! The plan that gives instances to leases.

use super::Action;
use super::census::{Census, Standing};
use crate::launch::count;
use crate::{Desired, Instance, InstanceState, Lease, Observed};

/// How many instances leases want: one for every lease that is not over, and one for every leased
/// instance whose lease is unknown.
pub(super) fn wanted(desired: &Desired, census: &Census<'_>, observed: &Observed) -> u32 {
    let known = |uid: &str| desired.leases.iter().any(|lease| lease.uid == uid);
    let orphans = census.ids(|instance, standing| {
        *standing == Standing::Leased
            && observed
                .lease_of(&instance.id)
                .is_some_and(|uid| !known(uid))
    });
    count(desired.open_leases().count()).saturating_add(count(orphans.len()))
}

/// Whether a disrupted instance still works.
fn is_usable(standing: &Standing) -> bool {
    matches!(standing, Standing::Disrupted(why) if !why.is_broken())
}

/// Gives running instances that no lease ever had to the leases that have none, in the order of the
/// leases. A lease whose instance is gone gets another one. If the tags of an instance lack its
/// lease or the lease's last change, the binding is repeated.
pub(super) fn plan(
    desired: &Desired,
    census: &Census<'_>,
    observed: &Observed,
    target: u32,
) -> Vec<Action> {
    let has_none = |lease: &&Lease| {
        let bound = observed.bindings.get(&lease.uid);
        !bound.is_some_and(|id| census.live.iter().any(|(i, _)| i.id == *id))
    };
    let is_free = |good: fn(&Standing) -> bool| {
        let live = census.live.iter();
        live.filter(move |(i, standing)| i.state == InstanceState::Running && good(standing))
    };
    // At its maximum the pool launches no better instance, so a lease gets one that is to be
    // replaced.
    let is_full = target >= desired.size.maximum;
    let second_best = is_free(is_usable).filter(|_| is_full);
    let free = is_free(|standing| *standing == Standing::Good).chain(second_best);
    let waiting = desired.open_leases().filter(has_none);
    let given = waiting
        .zip(free)
        .map(|(lease, (instance, _))| bind(lease, &instance.id));
    let untold = desired.open_leases().filter_map(|lease| {
        let id = observed.bindings.get(&lease.uid)?;
        let mut live = census.live.iter();
        let (instance, _) = live.find(|(i, s)| i.id == *id && *s == Standing::Leased)?;
        if observed.is_out_of_reach(id) {
            return None;
        }
        (!is_told(instance, lease)).then(|| bind(lease, id))
    });
    given.chain(untold).collect()
}

fn is_told(instance: &Instance, lease: &Lease) -> bool {
    instance.lease.as_ref() == Some(&lease.uid)
        && instance.lease_digest.as_ref() == Some(&lease.digest)
}

fn bind(lease: &Lease, instance_id: &str) -> Action {
    Action::Bind {
        lease: lease.uid.clone(),
        instance_id: instance_id.to_owned(),
    }
}
