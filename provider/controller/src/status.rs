//! What a pool's status says, from what was seen and done. Pure.

use api::condition::{self, ConditionStatus, LAUNCHED};
use api::pool::{ObservedSize, SpotPoolObservation, SpotPoolStatus};
use jiff::Timestamp;
use provider_core::{ErrorClass, Instance, InstanceState, Observed, Offering, Plan, Refusal, Wait};
use provider_runtime::conditions::{self, Verdict, reason};
use provider_runtime::events::Happened;

use crate::act::LaunchOutcome;
use crate::convert;
use crate::validate::Invalid;

/// What EC2 shows and what was planned for it.
pub fn observation(
    observed: &Observed,
    offerings: &[Offering],
    target: u32,
    now: Timestamp,
) -> SpotPoolObservation {
    let shown = |i: &&Instance| i.state != InstanceState::Terminated;
    let mut instances: Vec<&Instance> = observed.instances.iter().filter(shown).collect();
    instances.sort_by_key(|i| (i.slot, i.launch));
    let cold = observed.cold.among(offerings, now);
    SpotPoolObservation {
        size: ObservedSize {
            desired: i32::try_from(target).unwrap_or(i32::MAX),
            running: i32::try_from(running(observed)).unwrap_or(i32::MAX),
        },
        instances: instances
            .into_iter()
            .map(convert::instance_to_api)
            .collect(),
        launches: observed
            .launches
            .iter()
            .map(convert::launch_to_api)
            .collect(),
        launch_generation: convert::signed(observed.launch_generation),
        security_group_id: observed.groups.first().map(|g| g.id.clone()),
        cold_offerings: cold.map(|(o, c)| convert::cold_to_api(o, c)).collect(),
    }
}

/// `Ready` of a pool that was planned.
pub fn ready(plan: &Plan, observed: &Observed, deleted: bool) -> Verdict {
    if deleted {
        return Verdict::ready(false, reason::DELETING, "");
    }
    let stopped = plan.waits.iter().find_map(|wait| match wait {
        Wait::Stopped { ids } => Some(ids.join(", ")),
        _ => None,
    });
    if let Some(ids) = stopped {
        let message = format!("{ids} was stopped by somebody: start it, or terminate it");
        return Verdict::ready(false, reason::UNAVAILABLE, message);
    }
    let (have, want) = (running(observed), usize::try_from(plan.target));
    if want.is_ok_and(|want| have >= want) {
        return Verdict::ready(true, reason::AVAILABLE, "");
    }
    let message = format!("{have} of {} instances run", plan.target);
    Verdict::ready(false, reason::CREATING, message)
}

/// `Launched`: how the last launch went, while that still matters.
pub fn launched(
    plan: &Plan,
    observed: &Observed,
    offerings: &[Offering],
    last: Option<&LaunchOutcome>,
    now: Timestamp,
) -> Option<Verdict> {
    if plan
        .waits
        .iter()
        .any(|w| matches!(w, Wait::Capacity { .. }))
    {
        let (offering, cold) = observed.cold.among(offerings, now).last()?;
        return Some(refused(offering, &cold.refusal, ErrorClass::Capacity));
    }
    match last? {
        LaunchOutcome::Launched => Some(Verdict::new(
            LAUNCHED,
            ConditionStatus::True,
            "Launched",
            "",
        )),
        LaunchOutcome::Refused { offering, error } => {
            Some(refused(offering, &error.refusal(), error.class))
        }
    }
}

/// `Launched` of a pool whose spec cannot work.
pub fn not_launchable(invalid: &Invalid) -> Verdict {
    Verdict::new(
        LAUNCHED,
        ConditionStatus::False,
        ErrorClass::Configuration.as_str(),
        invalid.to_string(),
    )
}

/// Writes the verdicts into a status.
pub fn conclude(
    status: &mut SpotPoolStatus,
    verdicts: impl IntoIterator<Item = Verdict>,
    generation: Option<i64>,
    now: Timestamp,
) {
    for verdict in verdicts {
        conditions::set(&mut status.conditions, verdict, generation, now);
    }
}

/// Instances of the previous status that are lost: nobody here ended them.
pub fn lost<'a>(
    previous: &SpotPoolObservation,
    observed: &'a Observed,
) -> Vec<(Offering, Option<&'a Instance>, Happened)> {
    let was_up = |state: &str| matches!(state, "running" | "pending");
    previous
        .instances
        .iter()
        .filter(|before| was_up(&before.state))
        .filter_map(|before| {
            let seen = observed.instances.iter().find(|i| i.id == before.id);
            if seen.is_some_and(|i| i.state.fills_slot()) {
                return None;
            }
            let why = seen
                .and_then(|i| i.state_reason.as_deref())
                .unwrap_or("EC2 lists it no more");
            let offering = convert::offering_of(before);
            let message = format!("lost {} ({offering}): {why}", before.id);
            Some((offering, seen, Happened::warning("Interrupted", message)))
        })
        .collect()
}

/// What a change of `Launched` or `Ready` tells people.
pub fn transitions(before: &SpotPoolStatus, after: &SpotPoolStatus) -> Vec<Happened> {
    let mut happened = Vec::new();
    for type_ in [LAUNCHED, condition::READY, condition::SYNCED] {
        let old = condition::find(&before.conditions, type_);
        let Some(new) = condition::find(&after.conditions, type_) else {
            continue;
        };
        let same = old.is_some_and(|o| (o.status, &o.reason) == (new.status, &new.reason));
        if same {
            continue;
        }
        match (type_, new.status) {
            (LAUNCHED, ConditionStatus::False) => {
                happened.push(Happened::warning("LaunchRefused", new.message.clone()));
            }
            (condition::READY, ConditionStatus::True) => {
                happened.push(Happened::normal("Ready", "every instance runs"));
            }
            (condition::SYNCED, ConditionStatus::False)
                if new.reason == reason::RECONCILE_ERROR =>
            {
                happened.push(Happened::warning("ReconcileError", new.message.clone()));
            }
            (condition::SYNCED, ConditionStatus::False)
                if new.reason == reason::RECONCILE_PAUSED =>
            {
                let message = new.message.clone();
                happened.push(Happened::normal("ReconciliationPaused", message));
            }
            _ => {}
        }
    }
    happened
}

fn running(observed: &Observed) -> usize {
    let runs = |i: &&Instance| i.state == InstanceState::Running;
    observed.instances.iter().filter(runs).count()
}

/// The message names the offering, EC2's code and, for a quota, the limit to
/// raise. `fallback` stands in where the memory is of another class.
fn refused(offering: &Offering, refusal: &Refusal, fallback: ErrorClass) -> Verdict {
    let class = match refusal.class {
        ErrorClass::Quota => ErrorClass::Quota,
        _ => fallback,
    };
    let said = match refusal.message.as_str() {
        "" => refusal.code.clone(),
        message => format!("{}: {message}", refusal.code),
    };
    let next = match class {
        ErrorClass::Quota => {
            let (market, family) = offering.quota();
            let (name, code) = family.limit(market);
            format!("; raise the quota {code} ({name}) in this region")
        }
        ErrorClass::Capacity => "; it is tried again, and so is every other offering".to_owned(),
        ErrorClass::Denied => "; check the permissions of the ProviderConfig's identity".to_owned(),
        _ => String::new(),
    };
    Verdict::new(
        LAUNCHED,
        ConditionStatus::False,
        class.as_str(),
        format!("{offering}: {said}{next}"),
    )
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
