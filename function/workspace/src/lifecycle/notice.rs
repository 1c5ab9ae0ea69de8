//! What people read of a stop: before it comes, and after.

use api::condition::STOP_SCHEDULED;
use api::lifecycle::{EXTEND_UNTIL, LifecycleStatus, RESUME, StopReason};
use function_runtime::response::{Condition, Event, Severity};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cause::Cause;
use crate::lifecycle::terms::{Length, Terms, after};
use crate::lifecycle::{Decision, Step, WARNINGS};

const WARNING_REASONS: [&str; 2] = ["StopsWithin30Minutes", "StopsWithin5Minutes"];

/// `StopScheduled`, of every workspace that somebody or something may stop. `True`: it
/// stops within half an hour.
pub fn condition(decision: &Decision, terms: &Terms, now: Timestamp) -> Option<Condition> {
    let record = decision.status.as_ref()?;
    if decision.step != Step::Run {
        let why = stopped(decision.step, Some(record), terms);
        return Some(Condition::is_false(STOP_SCHEDULED, "Stopped", why.message));
    }
    let (Some(Time(at)), Some(because)) = (&record.stops_at, record.stops_because) else {
        let message = "nothing stops it, as far as that is known";
        return Some(Condition::is_false(STOP_SCHEDULED, "NotScheduled", message));
    };
    let message = announcement(*at, because, record, terms);
    let left = at.duration_since(now);
    let soon = WARNINGS.iter().rposition(|ahead| left <= *ahead);
    Some(match soon {
        Some(which) => {
            Condition::true_with_message(STOP_SCHEDULED, WARNING_REASONS[which], message)
        }
        None => Condition::is_false(STOP_SCHEDULED, "NotSoon", message),
    })
}

/// What somebody should hear of, when they have not heard it: `told` is the reason that
/// the condition had.
pub fn event(condition: Option<&Condition>, told: Option<&str>) -> Option<Event> {
    let condition = condition?;
    let reason = WARNING_REASONS
        .into_iter()
        .find(|soon| *soon == condition.reason)?;
    (told != Some(reason)).then(|| Event {
        severity: Severity::Warning,
        reason,
        message: condition.message.clone(),
    })
}

/// Why a workspace does not run, and how it runs again.
pub fn stopped(step: Step, record: Option<&LifecycleStatus>, terms: &Terms) -> Cause {
    let because = match step {
        Step::Run | Step::Stop(StopReason::State) | Step::Delete(StopReason::State) => {
            "stopped, as spec.parameters.lifecycle.state says".to_owned()
        }
        Step::Stop(StopReason::Idle) | Step::Delete(StopReason::Idle) => format!(
            "stopped, since nobody used it for {}: annotate the claim with {RESUME}=\"$(date)\" \
             to start it",
            text(terms.stop_after_idle.as_ref())
        ),
        Step::Stop(StopReason::MaxLifetime) | Step::Delete(StopReason::MaxLifetime) => format!(
            "stopped, since it ran for {}: annotate the claim with {RESUME}=\"$(date)\" to start it",
            text(terms.max_lifetime.as_ref())
        ),
    };
    let next = match (step, record.and_then(|record| record.deletes_at.as_ref())) {
        (Step::Delete(_), _) => {
            "; what was left of it is gone, as deleteAfterStopped and the policy say".to_owned()
        }
        (_, Some(_)) => "; status.lifecycle.deletesAt says when what is left of it goes".to_owned(),
        (_, None) => String::new(),
    };
    let reason = match step {
        Step::Run | Step::Stop(StopReason::State) | Step::Delete(StopReason::State) => "Stopped",
        Step::Stop(StopReason::Idle) | Step::Delete(StopReason::Idle) => "Idle",
        Step::Stop(StopReason::MaxLifetime) | Step::Delete(StopReason::MaxLifetime) => "Expired",
    };
    Cause::new(reason, because + &next)
}

fn announcement(
    at: Timestamp,
    because: StopReason,
    record: &LifecycleStatus,
    terms: &Terms,
) -> String {
    let started = record.started_at.as_ref().map(|Time(started)| *started);
    let is_extended = started
        .zip(terms.max_lifetime.as_ref())
        .is_some_and(|(started, length)| at > after(started, length));
    match because {
        StopReason::MaxLifetime if is_extended => {
            let lifetime = text(terms.max_lifetime.as_ref());
            format!("stops at {at:.0}, to which {EXTEND_UNTIL} extends its run of {lifetime}")
        }
        StopReason::MaxLifetime => {
            let lifetime = text(terms.max_lifetime.as_ref());
            let extend = if terms.max_extension.is_zero() {
                "commit a longer spec.parameters.lifecycle.maxLifetime".to_owned()
            } else {
                format!(
                    "annotate the claim with {EXTEND_UNTIL}=TIME, or commit a longer \
                         spec.parameters.lifecycle.maxLifetime"
                )
            };
            format!("stops at {at:.0}, {lifetime} after its start; to keep it running, {extend}")
        }
        StopReason::Idle => {
            let idle = text(terms.stop_after_idle.as_ref());
            format!("stops at {at:.0} if nobody uses it until then, {idle} after its last use")
        }
        StopReason::State => "stops, as spec.parameters.lifecycle.state says".to_owned(),
    }
}

fn text(length: Option<&Length>) -> &str {
    length.map_or("as long as it may", |length| length.text.as_str())
}
