//! Rules about limits, which no error switches off.

use api::cost::CostStatus;
use api::lifecycle::LifecycleStatus;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::case::compute;
use crate::case::own_names::is_own;
use crate::intent::Applied;
use crate::view::{View, is_hashed};

/// The first rule of limits that a response breaks.
pub fn violation(applied: &Applied<'_>) -> Option<String> {
    let view = applied.view;
    forgotten(view, applied.status).or_else(|| {
        let ended = ended(view)?;
        let what = running(applied)?;
        Some(format!("the run ended at {ended}, but {what}"))
    })
}

/// A record of the last call that the response does not have.
fn forgotten(view: &View, status: &Value) -> Option<String> {
    let is_running = view.machines().values().any(|machine| machine.serves);
    let has = |field: &str| status.get(field).is_some_and(Value::is_object);
    if record::<CostStatus>(view, "cost").is_some() && !has("cost") {
        return Some("the response drops status.cost".to_owned());
    }
    let lifecycle = record::<LifecycleStatus>(view, "lifecycle");
    let began = lifecycle.is_some_and(|record| record.started_at.is_some());
    if is_running && began && !has("lifecycle") {
        return Some("the response drops the start of a run".to_owned());
    }
    None
}

/// When the run ended at the latest, if it is over by the policy and by the recorded limits. One of
/// them holds, whether or not the policy is valid.
fn ended(view: &View) -> Option<jiff::Timestamp> {
    let record = record::<LifecycleStatus>(view, "lifecycle")?;
    if record.stopped_because.is_some() {
        return None;
    }
    let recorded = record.limits?;
    let recorded = length(
        recorded.max_lifetime.as_deref(),
        recorded.max_extension.as_deref(),
    )?;
    let by_policy = length(
        view.policy_text("/lifecycle/maxLifetime/maximum"),
        view.policy_text("/lifecycle/maxExtension"),
    )?;
    let ended = record.started_at?.0.checked_add(recorded.max(by_policy));
    ended.ok().filter(|ended| *ended <= crate::case::now())
}

/// The longest run with its longest extension.
fn length(lifetime: Option<&str>, extension: Option<&str>) -> Option<jiff::SignedDuration> {
    let extension = extension.map_or(Some(jiff::SignedDuration::ZERO), api::duration::duration)?;
    Some(api::duration::duration(lifetime?)? + extension)
}

/// A machine that runs on, or that the response starts.
fn running(applied: &Applied<'_>) -> Option<String> {
    let observed = &applied.view.observed;
    let own = |key: &&String| is_own(key) && !applied.earlier.contains(*key);
    applied
        .desired
        .keys()
        .filter(own)
        .find_map(|key| match observed.get(key) {
            Some(observed) => compute::runs(key, observed, applied.desired),
            None if is_hashed(key, "instance-") => Some(format!("{key} is new")),
            None => compute::runs(key, &Value::Null, applied.desired),
        })
}

/// A record in the status of the composite, if the API has its shape.
fn record<T: DeserializeOwned>(view: &View, field: &str) -> Option<T> {
    T::deserialize(view.status()?.get(field)?).ok()
}
