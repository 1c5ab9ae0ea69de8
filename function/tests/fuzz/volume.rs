//! Rules about the home volume, which cannot be made again.

use serde_json::Value;

use crate::intent::Applied;
use crate::view::{external_name, is_hashed, text};

const SIZE: &str = "/spec/forProvider/size";
const ZONE: &str = "/spec/forProvider/availabilityZone";
const INSTANCE: &str = "/spec/forProvider/instanceId";

/// The first rule of the home volume that an answer breaks.
pub fn violation(applied: &Applied<'_>) -> Option<String> {
    attached_twice(applied).or_else(|| changed(applied))
}

/// EC2 attaches a volume to one instance at a time.
fn attached_twice(applied: &Applied<'_>) -> Option<String> {
    let view = applied.view;
    let fresh = |key: &&String| {
        is_hashed(key, "home-attachment-")
            && !view.observed.contains_key(key.as_str())
            && !applied.earlier.contains(key.as_str())
    };
    let mut fresh = applied.desired.keys().filter(fresh);
    let key = fresh.next()?;
    if fresh.next().is_some() {
        return Some("two attachments begin at once".to_owned());
    }
    if !view.required.contains_key("attachments") {
        return Some(format!("{key} begins before anybody looked for others"));
    }
    let instance = text(&applied.desired[key], INSTANCE)?;
    let elsewhere = view.attached_to().into_iter().find(|id| *id != instance)?;
    Some(format!(
        "{key} begins while {elsewhere} may have the volume"
    ))
}

fn changed(applied: &Applied<'_>) -> Option<String> {
    let view = applied.view;
    let is_own = !applied.earlier.contains("home");
    let home = applied.desired.get("home").filter(|_| is_own)?;
    let recorded = view.recorded_home().filter(|_| applied.is_resolved);
    let spec = |home: &Value| home.get("spec").cloned();
    let is_held = view.observed.get("home").and_then(spec) == spec(home);
    if recorded.is_some() && !view.deletes_homes() && may_create(home) && !is_held {
        return Some("a volume that was recorded may be made again".to_owned());
    }
    let Some(observed) = view.observed.get("home") else {
        let named = external_name(home);
        let lost = recorded.filter(|(id, _)| !id.is_empty() && named != Some(*id));
        return lost.map(|(id, _)| format!("{id} is not found again, but {named:?}"));
    };
    let size = |home: &Value| home.pointer(SIZE).and_then(Value::as_f64);
    let whole = |size: &f64| size.fract() == 0.0 && size.abs() < 1e15;
    if size(observed).filter(whole) > size(home) {
        return Some(format!(
            "it shrinks from {:?} to {:?}",
            size(observed),
            size(home)
        ));
    }
    if text(observed, ZONE).is_some_and(|zone| text(home, ZONE) != Some(zone)) {
        return Some("it moves to another zone".to_owned());
    }
    let named = external_name(home);
    let is_renamed = named.is_some() && named != external_name(observed);
    is_renamed.then(|| format!("it becomes {named:?}"))
}

fn may_create(home: &Value) -> bool {
    let policies = home.pointer("/spec/managementPolicies");
    let mut policies = policies.and_then(Value::as_array).into_iter().flatten();
    policies.any(|policy| policy == "*" || policy == "Create")
}
