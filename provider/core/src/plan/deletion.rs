//! The plan of a deleted pool: its instances end first, then its launch templates and groups are
//! deleted.

use jiff::Timestamp;

use super::action::terminate;
use super::{Action, Disruption, Plan, Wait, home, reach};
use crate::{Desired, InstanceState, Observed};

pub(super) fn plan(desired: &Desired, observed: &Observed, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    let mut waits = Vec::new();
    let (mut leased, mut interrupted) = (Vec::new(), Vec::new());
    let mut waiting = false;
    for instance in &observed.instances {
        let id = &instance.id;
        let notice = observed.notices.get(id);
        if instance.state == InstanceState::ShuttingDown {
            waiting = true;
        } else if !instance.state.is_live() || observed.is_out_of_reach(id) {
        } else if let Some(why) = observed.ending.get(id)
            && !notice.is_some_and(|n| n.is_interruption(now))
        {
            actions.push(terminate(id, Disruption::Begun(why.clone())));
        } else if !desired.force && is_held(desired, observed, id) {
            leased.push(id.clone());
        } else if notice.is_some_and(|n| n.is_interruption(now)) {
            interrupted.push(id.clone());
        } else {
            actions.push(terminate(id, Disruption::PoolDeleted));
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
        let promised = launch.promised(&observed.instances);
        actions.extend(promised.map(|one| terminate(&one.id, Disruption::PoolDeleted)));
    }
    waits.extend(reach::waits(observed));
    let is_empty = actions.is_empty()
        && waits.is_empty()
        && !waiting
        && leased.is_empty()
        && interrupted.is_empty();
    let in_doubt = observed.group_in_doubt_until.is_some_and(|u| u > now);
    waiting |= in_doubt && observed.groups.is_empty();
    waiting |= observed.are_groups_unseen;
    if waiting {
        waits.push(Wait::Instances);
    }
    if !leased.is_empty() {
        waits.push(Wait::Leases { ids: leased });
    }
    if !interrupted.is_empty() {
        waits.push(Wait::Interrupted { ids: interrupted });
    }
    // EC2 refuses to delete a group that an instance still uses.
    if actions.is_empty() && waits.is_empty() {
        let templates = observed.templates.iter().cloned();
        actions.extend(templates.map(|generation| Action::DeleteTemplate { generation }));
        actions.extend(observed.groups.iter().map(|g| Action::DeleteGroup {
            group_id: g.id.clone(),
        }));
    }
    let mut plan = Plan {
        target: 0,
        actions,
        waits,
        spot_short_since: None,
    };
    if is_empty {
        home::plan_deletion(desired, observed, now, &mut plan);
    }
    plan
}

/// Whether a lease has the instance. Only a known lease that is over gives it back: an unknown one
/// may be a lease that was restored.
fn is_held(desired: &Desired, observed: &Observed, id: &str) -> bool {
    observed.lease_of(id).is_some_and(|uid| {
        let lease = desired.leases.iter().find(|lease| lease.uid == uid);
        lease.is_none_or(|lease| !lease.is_over)
    })
}
