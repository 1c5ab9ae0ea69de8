//! Derives a pool's status from the observed state and the plan. Pure.

mod losses;

use std::collections::BTreeMap;

use api::condition::{self, ConditionStatus, LAUNCHED};
use api::pool::{ObservedSize, PoolInstance, SpotPoolObservation, SpotPoolStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_core::{
    Desired, ErrorClass, Instance, InstanceState, Observed, Offering, Plan, Refusal, Wait,
};
use provider_runtime::conditions::{self, Verdict, reason};
use provider_runtime::events::Happened;

pub use losses::{announced, died_at_birth, lost, scheduled};

use crate::access::Origin;
use crate::act::LaunchOutcome;
use crate::numbers::{signed, small};
use crate::setup::Shown;
use crate::spot_prices::{self, SpotPrices};
use crate::validate::Invalid;
use crate::{convert, home};

/// What is wrong with an instance without the pool's tags.
const UNTAGGED: &str = "it runs without the tags of its pool, so the provider cannot end it: put the \
                        tags gpu.platform.acme.io:cluster, :pool-uid and :launch back, or terminate \
                        it";

/// The observed state and the plan in the form of the status.
pub fn observation(
    observed: &Observed,
    offerings: &[Offering],
    plan: &Planned<'_>,
    now: Timestamp,
) -> SpotPoolObservation {
    let shown = |i: &&Instance| i.state != InstanceState::Terminated;
    let instances = observed.instances.iter().filter(shown);
    let unavailable = observed.unavailable.among(offerings, now);
    let live = observed.instances.iter().filter(|i| i.state.is_live());
    let leased = live.filter(|i| observed.lease_of(&i.id).is_some()).count();
    SpotPoolObservation {
        // The status writer has them.
        account: None,
        identity: None,
        pool_identity: None,
        size: ObservedSize {
            desired: small(plan.target),
            running: i32::try_from(running(observed)).unwrap_or(i32::MAX),
            leased: i32::try_from(leased).unwrap_or(i32::MAX),
        },
        instances: instances.map(|i| member(i, observed, plan)).collect(),
        launches: observed
            .launches
            .iter()
            .map(convert::launch_to_api)
            .collect(),
        leases: observed.bindings.clone(),
        ending: observed.ending.clone(),
        launch_templates: observed.templates.iter().cloned().collect(),
        spot_short_since: plan.spot_short_since.map(Time),
        launch_generation: signed(observed.launch_generation),
        security_group_id: observed.groups.first().map(|g| g.id.clone()),
        home: home::to_api(&observed.home),
        unavailable_offerings: unavailable
            .map(|(o, c)| convert::unavailable_to_api(o, c))
            .collect(),
    }
}

/// The parts of a plan that the status shows.
pub struct Planned<'a> {
    /// How many instances should run.
    pub target: u32,
    /// The plan's waits.
    pub waits: &'a [Wait],
    /// Since when the pool has lacked spot capacity.
    pub spot_short_since: Option<Timestamp>,
    /// Since when instances fail EC2's checks, by id.
    pub impaired_since: &'a BTreeMap<String, Timestamp>,
    /// What the consoles of instances say, by id.
    pub consoles: &'a BTreeMap<String, Shown>,
    /// The spot prices.
    pub spot_prices: &'a SpotPrices,
}

fn member(instance: &Instance, observed: &Observed, plan: &Planned<'_>) -> PoolInstance {
    let notice = observed.notices.get(&instance.id);
    let scheduled = observed.scheduled.get(&instance.id);
    let impaired_since = plan.impaired_since.get(&instance.id);
    let missing_since = observed.missing_since.get(&instance.id);
    let console = plan.consoles.get(&instance.id);
    PoolInstance {
        notice: notice.map(convert::notice_to_api),
        scheduled_event: scheduled.map(convert::scheduled_to_api),
        impaired_since: impaired_since.map(|since| Time(*since)),
        missing_since: missing_since.map(|since| Time(*since)),
        why: why(instance, observed, plan),
        hourly_usd: spot_prices::of_instance(plan.spot_prices, instance),
        setup: console.map(|console| console.setup.clone()),
        console_host_keys: console
            .map(|console| console.host_keys.clone())
            .unwrap_or_default(),
        ..convert::instance_to_api(instance)
    }
}

/// Why an instance is not as it should be, or will not stay so.
fn why(instance: &Instance, observed: &Observed, plan: &Planned<'_>) -> Option<String> {
    if observed.untagged.contains(&instance.id) {
        return Some(UNTAGGED.to_owned());
    }
    if observed.missing_since.contains_key(&instance.id) {
        return Some("EC2 shows no trace of it".to_owned());
    }
    let names = |ids: &[String]| ids.contains(&instance.id);
    let waited = plan.waits.iter().find_map(|wait| match wait {
        Wait::Stopped { ids } if names(ids) => {
            Some("somebody stopped it: start it, or terminate it")
        }
        Wait::Interrupted { ids } if names(ids) => Some("AWS takes it back"),
        Wait::Room { ids } if names(ids) => {
            Some("it is to be replaced: raise size.maximum for the next one, or lower size.minimum")
        }
        Wait::Leases { ids } if names(ids) => Some("somebody has it"),
        _ => None,
    });
    let impaired = observed.impaired.contains(&instance.id);
    let impaired = impaired.then_some("it fails EC2's status checks");
    waited.or(impaired).map(ToOwned::to_owned)
}

/// The instances that somebody took the pool's tags from, since the previous status.
pub fn untagged(previous: &SpotPoolObservation, observed: &Observed) -> Vec<Happened> {
    let is_known = |id: &String| {
        let before = previous.instances.iter().find(|i| i.id == *id);
        before.is_some_and(|before| before.why.as_deref() == Some(UNTAGGED))
    };
    let new = observed.untagged.iter().filter(|id| !is_known(id));
    new.map(|id| Happened::warning("TagsLost", format!("{id}: {UNTAGGED}")))
        .collect()
}

/// The condition `Ready` of a pool that was planned.
pub fn ready(plan: &Plan, observed: &Observed, desired: &Desired) -> Verdict {
    let home = plan.waits.iter().find_map(|wait| match wait {
        Wait::Home(wait) => Some(wait.to_string()),
        _ => None,
    });
    let untagged = plan.waits.iter().find_map(|wait| match wait {
        Wait::Untagged { ids } => Some(format!("{}: {UNTAGGED}", ids.join(", "))),
        _ => None,
    });
    if desired.deleted {
        let waits = untagged.or(home).unwrap_or_default();
        return Verdict::ready(false, reason::DELETING, waits);
    }
    if let Some(message) = untagged {
        return Verdict::ready(false, reason::UNAVAILABLE, message);
    }
    let missing = plan.waits.iter().find_map(|wait| match wait {
        Wait::Missing { ids } => Some(ids.join(", ")),
        _ => None,
    });
    if let Some(ids) = missing {
        let message = format!("EC2 shows no trace of {ids}: it is replaced after two minutes");
        return Verdict::ready(false, reason::UNAVAILABLE, message);
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
        let lacks_home = desired.home.is_some() && plan.target > 0 && observed.at_home().is_none();
        if lacks_home {
            let message = home.unwrap_or_else(|| "waits for the home volume".to_owned());
            return Verdict::ready(false, reason::CREATING, message);
        }
        if let Some(closed) = closed(observed, desired) {
            let message = format!("{} waits for the tags with the public keys", closed.id);
            return Verdict::ready(false, reason::CREATING, message);
        }
        return Verdict::ready(true, reason::AVAILABLE, home.unwrap_or_default());
    }
    let message = format!("{have} of {} instances run", plan.target);
    let message = [Some(message), home].into_iter().flatten();
    let message: Vec<String> = message.collect();
    Verdict::ready(false, reason::CREATING, message.join("; "))
}

/// The condition `Ready` of a pool that was not planned, if fewer instances run than it wants.
/// Otherwise the condition stays as it is.
pub fn fewer(plan: &Plan, observed: &Observed) -> Option<Verdict> {
    let have = running(observed);
    let is_short = usize::try_from(plan.target).is_ok_and(|want| have < want);
    let message = format!("{have} of {} instances run", plan.target);
    is_short.then(|| Verdict::ready(false, reason::CREATING, message))
}

/// A running instance that has none of the pool's public keys yet.
fn closed<'a>(observed: &'a Observed, desired: &Desired) -> Option<&'a Instance> {
    let keys = desired.authorized_keys.as_ref()?;
    let mut running = observed.instances.iter();
    running
        .find(|i| i.state == InstanceState::Running && i.authorized_keys.is_empty())
        .filter(|_| !keys.is_empty())
}

/// The condition `Launched`: the result of the last launch, as long as it matters.
pub fn launched(
    plan: &Plan,
    observed: &Observed,
    offerings: &[Offering],
    last: Option<&LaunchOutcome>,
    origin: &Origin,
    now: Timestamp,
) -> Option<Verdict> {
    if plan
        .waits
        .iter()
        .any(|w| matches!(w, Wait::Capacity { .. }))
    {
        let (offering, unavailable) = observed.unavailable.among(offerings, now).last()?;
        let class = ErrorClass::Capacity;
        return Some(refused(offering, &unavailable.refusal, class, origin));
    }
    match last? {
        LaunchOutcome::Launched => Some(Verdict::new(
            LAUNCHED,
            ConditionStatus::True,
            "Launched",
            "",
        )),
        LaunchOutcome::Refused { offering, refusal } => {
            Some(refused(offering, refusal, refusal.class, origin))
        }
    }
}

/// The condition `Launched` of a pool whose spec cannot work.
pub fn not_launchable(invalid: &Invalid) -> Verdict {
    Verdict::new(
        LAUNCHED,
        ConditionStatus::False,
        ErrorClass::Configuration.as_str(),
        invalid.to_string(),
    )
}

/// Sets the conditions of a status.
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

/// The events for changes of `Launched`, `Ready` or `Synced`.
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
                if new.reason == reason::RECONCILE_PAUSED =>
            {
                let message = new.message.clone();
                happened.push(Happened::normal("ReconciliationPaused", message));
            }
            (condition::SYNCED, ConditionStatus::False) => {
                happened.push(Happened::warning("ReconcileError", new.message.clone()));
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

/// The message about a refusal. It names the offering, EC2's code and, for a quota, the limit to
/// raise. `fallback` is used if the cached refusal has another class.
fn refused(
    offering: &Offering,
    refusal: &Refusal,
    fallback: ErrorClass,
    origin: &Origin,
) -> Verdict {
    let class = match refusal.class {
        ErrorClass::Quota => ErrorClass::Quota,
        _ => fallback,
    };
    let said = match refusal.message.as_str() {
        "" => refusal.code.clone(),
        message => format!("{}: {message}", refusal.code),
    };
    let next = match class {
        ErrorClass::Quota => format!("; {}", refusal.limit_to_raise(offering)),
        _ if refusal.lacks_spot_role() => {
            "; create EC2's role for spot instances, once for the account: aws iam \
             create-service-linked-role --aws-service-name spot.amazonaws.com"
                .to_owned()
        }
        ErrorClass::Capacity if refusal.is_unsold() => {
            "; it is tried again in an hour, and every other offering before that".to_owned()
        }
        ErrorClass::Capacity => "; it is tried again, and so is every other offering".to_owned(),
        ErrorClass::Denied => format!("; {}", origin.next_step(None, &refusal.code)),
        ErrorClass::Configuration if refusal.may_be_of_volume_key() => {
            "; the account's key for volumes may not permit this launch: see docs/install.md"
                .to_owned()
        }
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
