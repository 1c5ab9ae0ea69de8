//! What happened to instances since the previous status: ends, refusals at their birth, and AWS's
//! announcements.

use api::pool::SpotPoolObservation;
use provider_core::{Instance, Notice, NoticeKind, Observed, Offering, Refusal, ScheduledEvent};
use provider_runtime::events::Happened;

use crate::convert;
use crate::expectations::Expectations;

/// The instances of the previous status that are lost: they ended, but this provider did not end
/// them. A status that could not be written still shows instances of `ended` as running.
pub fn lost<'a>(
    previous: &SpotPoolObservation,
    observed: &'a Observed,
    ended: &Expectations,
) -> Vec<(Offering, Option<&'a Instance>, Happened)> {
    let was_up = |state: &str| matches!(state, "running" | "pending");
    previous
        .instances
        .iter()
        .filter(|before| was_up(&before.state))
        .filter_map(|before| {
            let seen = observed.instances.iter().find(|i| i.id == before.id);
            if seen.is_some_and(|i| i.state.is_live()) {
                return None;
            }
            let has_run = before.state != "pending";
            if !has_run && seen.is_some_and(|i| i.died_at_birth().is_some()) {
                // The condition `Launched` reports an instance that EC2 ended before it ran.
                return None;
            }
            let is_reclaimed = seen.is_some_and(Instance::was_reclaimed);
            // The process that ended it may have died before it could write that.
            let is_ended = ended.knows(&before.id) || previous.ending.contains_key(&before.id);
            if is_ended && !is_reclaimed {
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

/// The refusal of a launch that EC2 accepted, and whose instance it ended since the previous status.
pub fn died_at_birth(
    previous: &SpotPoolObservation,
    observed: &Observed,
) -> Option<(Offering, Refusal)> {
    let was_starting = |instance: &&Instance| {
        let mut shown = previous.instances.iter();
        let mut launches = previous.launches.iter();
        shown.any(|before| before.id == instance.id && before.state == "pending")
            || launches.any(|launch| u64::try_from(launch.launch) == Ok(instance.launch))
    };
    let mut born = observed.instances.iter().filter(was_starting);
    born.find_map(|instance| {
        let refusal = instance.died_at_birth()?;
        Some((instance.offering.clone(), refusal))
    })
}

/// The announcements of AWS since the previous status.
pub fn announced(previous: &SpotPoolObservation, observed: &Observed) -> Vec<Happened> {
    let is_known = |id: &String, notice: &Notice| {
        let before = previous.instances.iter().find(|i| i.id == *id);
        let before = before.and_then(|i| i.notice.as_ref());
        before.is_some_and(|before| before.kind == notice.kind.as_str())
    };
    let is_ours = |id: &String| observed.instances.iter().any(|i| i.id == *id);
    let news = observed.notices.iter();
    news.filter(|(id, notice)| is_ours(id) && !is_known(id, notice))
        .map(|(id, notice)| match notice.kind {
            NoticeKind::Interruption => {
                let text = format!("AWS takes {id} back within two minutes");
                Happened::warning("InterruptionWarning", text)
            }
            NoticeKind::Rebalance => {
                let text = format!("AWS recommends to rebalance {id}");
                Happened::normal("RebalanceRecommendation", text)
            }
        })
        .collect()
}

/// The events that AWS has scheduled since the previous status. AWS may shift an event, which is no
/// news.
pub fn scheduled(previous: &SpotPoolObservation, observed: &Observed) -> Vec<Happened> {
    let is_known = |id: &String, event: &ScheduledEvent| {
        let before = previous.instances.iter().find(|i| i.id == *id);
        let before = before.and_then(|i| i.scheduled_event.as_ref());
        before.is_some_and(|before| before.code == event.code)
    };
    let events = observed.scheduled.iter();
    events
        .filter(|(id, event)| !is_known(id, event))
        .map(|(id, event)| {
            let when = event.not_before.map(|at| format!(", not before {at:.0}"));
            let when = when.unwrap_or_default();
            let text = format!("AWS has scheduled {} for {id}{when}", event.code);
            Happened::warning("ScheduledEvent", text)
        })
        .collect()
}
