//! The plan of a pool that is not deleted: its group, leases, number of instances and replacements.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::action::terminate;
use super::census::{Census, Standing, back_to_spot_at};
use super::launches::Source;
use super::{Action, Disruption, Plan, Wait, home, keys, leases, reach, surplus};
use crate::launch::count;
use crate::{Desired, InstanceState, Launch, Observed, SecurityGroups, Size};

pub(super) fn plan(desired: &Desired, observed: &Observed, now: Timestamp) -> Plan {
    if desired.has_ended(now) && desired.size != Size::NONE {
        let ended = Desired {
            size: Size::NONE,
            ..desired.clone()
        };
        return plan(&ended, observed, now);
    }
    let bound;
    let mut desired = desired;
    if desired.home.is_some() {
        bound = Desired {
            offerings: home::offerings(desired, observed, now),
            ..desired.clone()
        };
        desired = &bound;
    }
    let mut census = Census::take(desired, observed, now);
    let wanted = leases::wanted(desired, &census, observed);
    let mut plan = Plan {
        target: desired.size.target(wanted),
        actions: Vec::new(),
        waits: Vec::new(),
        spot_short_since: None,
    };
    plan_group(desired, observed, &mut plan);
    let overdue = census.overdue.iter();
    plan.actions
        .extend(overdue.map(|l| Action::Forget { launch: l.launch }));
    let over = census.ids(|i, standing| *standing == Standing::Over && !observed.stays(&i.id));
    plan.actions.extend(
        over.iter()
            .map(|id| terminate(id, over_because(observed, id))),
    );
    let bound = leases::plan(desired, &census, observed, plan.target);
    census.lease(&bound);
    plan.actions.extend(bound);
    plan.actions.extend(keys::plan(desired, observed));
    plan_unused(desired, &mut census, now, &mut plan);

    let generation = desired
        .group_ids(observed)
        .map(|ids| desired.generation(&ids));
    let source = generation.clone().map(|generation| Source {
        desired,
        observed,
        census: &census,
        generation,
        now,
    });
    plan_number(desired, observed, &census, source.as_ref(), now, &mut plan);
    if let Some(current) = generation {
        plan_templates(observed, &current, &mut plan);
    }
    plan_waits(desired, &census, now, &mut plan);
    plan.waits.extend(reach::waits(observed));
    home::plan(desired, observed, &census, now, &mut plan);
    plan
}

fn over_because(observed: &Observed, id: &str) -> Disruption {
    let begun = observed.ending.get(id).cloned();
    begun.map_or(Disruption::LeaseOver, Disruption::Begun)
}

fn plan_group(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let SecurityGroups::Owned { vpc_id, rules } = &desired.groups else {
        return;
    };
    if observed.are_groups_unseen {
        return;
    }
    let Some(group) = observed.group_in(vpc_id) else {
        plan.actions.push(Action::CreateGroup {
            vpc_id: vpc_id.clone(),
            rules: rules.clone(),
        });
        return;
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
}

/// Ends disrupted instances that have no lease. The pool gives them to no lease, so they end before
/// their successors run. A pool whose leases come and go always starts instances, and would never
/// have a successor to spare. In a pool at its maximum a lease may get a disrupted instance, so the
/// planner ends none there.
fn plan_unused(desired: &Desired, census: &mut Census<'_>, now: Timestamp, plan: &mut Plan) {
    let is_full = plan.target >= desired.size.maximum;
    let has_leases = desired.open_leases().next().is_some();
    if is_full || !has_leases || census.has_just_launched(now) {
        return;
    }
    let spare = census.have().saturating_sub(desired.size.minimum);
    let number = budget(desired, census).min(spare);
    let disrupted = census.disrupted().into_iter().take(to_usize(number));
    let ends: Vec<_> = disrupted.map(|(i, why)| (i.id.clone(), why)).collect();
    for (id, why) in ends {
        census.end(&id);
        plan.actions.push(terminate(&id, why));
    }
}

/// How many more instances may be replaced now.
fn budget(desired: &Desired, census: &Census<'_>) -> u32 {
    let at_once = desired.replace.at_once.max(1);
    at_once.saturating_sub(census.replacing(desired))
}

/// Brings the number of instances to the target. Once it is there, replaces disrupted instances.
fn plan_number(
    desired: &Desired,
    observed: &Observed,
    census: &Census<'_>,
    source: Option<&Source<'_>>,
    now: Timestamp,
    plan: &mut Plan,
) {
    let have = census.have();
    let disrupted = count(census.disrupted().len());
    let surplus = have.saturating_sub(plan.target);
    let missing = plan.target.saturating_sub(have);
    let missing = missing.min(census.room(desired.size.maximum));
    let before = plan.actions.len();
    plan_surplus(desired, observed, census, surplus, now, plan);
    let ending = count(plan.actions.len() - before);
    // An unanswered launch may have brought instances. It is not repeated where these could be too
    // many.
    let stays = (have - ending).saturating_add(census.stuck());
    let repeats = if surplus > disrupted || stays > desired.size.maximum {
        Vec::new()
    } else {
        repeats(desired, source, &census.pending, now)
    };
    let replaces = missing == 0 && surplus == 0 && disrupted > 0;
    let held = observed.hold_launches_until.filter(|until| *until > now);
    match held {
        Some(until) if missing > 0 || replaces || !repeats.is_empty() => {
            plan.waits.push(Wait::Retry { until });
        }
        Some(_) => {}
        None => {
            plan.actions.extend(repeats);
            if let Some(source) = source {
                if missing > 0 {
                    source.fill(missing, plan);
                } else if replaces {
                    plan_replacement(desired, census, source, plan);
                }
            }
        }
    }
    if missing > 0 && plan.spot_short_since.is_none() {
        plan.spot_short_since = observed.spot_short_since;
    }
}

/// Ends disrupted instances first, as soon as enough others run. Instances that EC2 does not list
/// yet are newer than all that it lists. So they are the surplus before the listed ones, and end
/// once they are listed.
fn plan_surplus(
    desired: &Desired,
    observed: &Observed,
    census: &Census<'_>,
    surplus: u32,
    now: Timestamp,
    plan: &mut Plan,
) {
    let disrupted = census.disrupted();
    let is_up = |state| state != InstanceState::Pending;
    let mut up = census.serving();
    up += count(disrupted.iter().filter(|(i, _)| is_up(i.state)).count());
    let of_disrupted = surplus.min(count(disrupted.len()));
    for (instance, why) in disrupted.into_iter().take(to_usize(of_disrupted)) {
        if is_up(instance.state) {
            if up <= plan.target {
                continue;
            }
            up -= 1;
        }
        plan.actions.push(terminate(&instance.id, why));
    }
    let of_others = (surplus - of_disrupted).saturating_sub(census.on_their_way());
    let others = surplus::surplus(desired, observed, census, to_usize(of_others));
    let has_ended = desired.has_ended(now);
    let why = |choice| {
        if has_ended {
            Disruption::Ended
        } else {
            Disruption::Surplus(choice)
        }
    };
    let others = others.into_iter();
    plan.actions
        .extend(others.map(|(i, choice)| terminate(&i.id, why(choice))));
}

/// Plans as many replacements as the budget allows. If the pool may grow, the replacement starts
/// before the disrupted instance ends. If the pool may only shrink, the disrupted instance ends
/// first.
fn plan_replacement(desired: &Desired, census: &Census<'_>, source: &Source<'_>, plan: &mut Plan) {
    let disrupted = census.disrupted();
    let at_once = budget(desired, census).min(count(disrupted.len()));
    let spot_only = disrupted
        .first()
        .is_some_and(|(_, why)| *why == Disruption::BackToSpot);
    let waits = census.has_just_launched(source.now);
    if waits || at_once == 0 || !source.has_candidates(spot_only) {
        return;
    }
    let have = census.have();
    let room = census.room(desired.size.maximum);
    // A broken instance does not count towards the minimum.
    let broken = disrupted.iter().filter(|(_, why)| why.is_broken());
    let broken = count(broken.count());
    let spare = have.saturating_sub(desired.size.minimum).max(broken);
    if room > 0 {
        source.replace(at_once.min(room), spot_only, plan);
    } else if spare == 0 {
        let ids = disrupted.iter().map(|(i, _)| i.id.clone()).collect();
        plan.waits.push(Wait::Room { ids });
    } else {
        let number = at_once.min(spare);
        let first = disrupted.into_iter().take(to_usize(number));
        plan.actions
            .extend(first.map(|(i, why)| terminate(&i.id, why)));
        source.replace(number, spot_only, plan);
    }
}

/// Repeats the launches without an answer, until they are given up. A launch from another spec is
/// not repeated: either EC2 lists its instances, or the pool forgets the launch.
fn repeats(
    desired: &Desired,
    source: Option<&Source<'_>>,
    pending: &[&Launch],
    now: Timestamp,
) -> Vec<Action> {
    let is_wanted = |l: &Launch| {
        source.is_some_and(|source| source.generation == l.generation)
            && l.offerings.iter().all(|o| desired.offerings.contains(o))
    };
    let unanswered = pending
        .iter()
        .filter(|l| l.answer.is_none() && !l.is_given_up() && is_wanted(l));
    unanswered
        .map(|l| {
            Action::Launch(Launch {
                decided_at: now,
                ..(*l).clone()
            })
        })
        .collect()
}

fn plan_templates(observed: &Observed, current: &str, plan: &mut Plan) {
    let pending = observed.launches.iter().map(|l| l.generation.as_str());
    let used: BTreeSet<&str> = pending.chain([current]).collect();
    let unused = observed
        .templates
        .iter()
        .filter(|t| !used.contains(t.as_str()));
    plan.actions
        .extend(unused.map(|generation| Action::DeleteTemplate {
            generation: generation.clone(),
        }));
}

fn plan_waits(desired: &Desired, census: &Census<'_>, now: Timestamp, plan: &mut Plan) {
    use InstanceState::{Pending, Stopped, Stopping};
    let counts = |s: &Standing| !matches!(s, Standing::Interrupted | Standing::Over);
    let boots = !census
        .ids(|i, s| i.state == Pending && counts(s))
        .is_empty();
    if census.on_their_way() > 0 || boots {
        plan.waits.push(Wait::Instances);
    }
    let stopped = census.ids(|i, s| matches!(i.state, Stopped | Stopping) && counts(s));
    if !stopped.is_empty() {
        plan.waits.push(Wait::Stopped { ids: stopped });
    }
    let interrupted = census.ids(|_, s| *s == Standing::Interrupted);
    if !interrupted.is_empty() {
        plan.waits.push(Wait::Interrupted { ids: interrupted });
    }
    let ages = census
        .live
        .iter()
        .filter_map(|(i, _)| back_to_spot_at(i, desired));
    let next = ages.filter(|at| *at > now).min();
    plan.waits.extend(next.map(|until| Wait::Age { until }));
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
