//! What a workspace that is ready must have.

use function_sdk_rust::proto::v1::{RunFunctionResponse, Status};
use serde_json::Value;

use crate::case::own_names::is_own;
use crate::case::{RECORD, compute};
use crate::connection;
use crate::intent::Applied;
use crate::view::{Machine, View, condition, is_compute, is_deleting, is_hashed, is_pool, text};

/// The first rule of readiness that a response breaks. `is_ready`: the response says that the
/// workspace is ready.
pub fn violation(
    applied: &Applied<'_>,
    is_ready: bool,
    response: &RunFunctionResponse,
) -> Option<String> {
    let is_false = |type_: &str| {
        let mut conditions = response.conditions.iter();
        conditions.any(|c| c.r#type == type_ && c.status == Status::ConditionFalse as i32)
    };
    let is_closed = is_false("AccessReady");
    let phase = text(applied.status, "/phase");
    let keeps_phase = is_false("ConfigResolved") && may_be_unreadable(applied.view);
    let is_in_phase = phase == Some("Ready") && !keeps_phase;
    if (is_ready || is_in_phase)
        && let Some(id) = without_software(applied)
    {
        return Some(format!("Ready, and the setup of {id} has not ended"));
    }
    if let Some(key) = strange_host_key(applied) {
        return Some(format!("{key:?} is no host key"));
    }
    let well = |m: &Machine| m.serves && m.in_order;
    if is_ready && !applied.view.machines().values().any(well) {
        return Some("Ready, and no machine serves".to_owned());
    }
    if is_ready && let Some(part) = part(applied, |part| is_deleting(part) || is_failing(part)) {
        return Some(format!("Ready, and {part} is not in order"));
    }
    if phase == Some("Ready")
        && let Some(part) = part(applied, is_deleting)
    {
        return Some(format!("phase Ready, and {part} is being deleted"));
    }
    if is_closed && (is_ready || phase == Some("Ready")) {
        return Some("Ready, and nobody can reach it".to_owned());
    }
    if is_closed
        && applied.view.requires_access()
        && let Some(started) = started(applied)
    {
        return Some(format!("nobody can reach it, and {started}"));
    }
    None
}

/// The name of a composed resource of the machine or the home that is like this.
fn part(applied: &Applied<'_>, is_like: impl Fn(&Value) -> bool) -> Option<String> {
    let desired = applied.desired.keys();
    let is_part = |key: &str| is_own(key) && ![connection::KEY, RECORD].contains(&key);
    let own = desired.filter(|key| is_part(key) && !applied.passed_on.contains(*key));
    own.filter(|key| applied.view.observed.get(*key).is_some_and(&is_like))
        .map(String::clone)
        .next()
}

fn is_failing(part: &Value) -> bool {
    condition(part, "Synced") == Some("False")
}

/// The machine of the response, if its pool reports another state of its setup than the end. A machine
/// that was ready stays so: consoles forget.
fn without_software(applied: &Applied<'_>) -> Option<String> {
    let id = text(applied.status, "/instanceId")?;
    let view = applied.view;
    let before = |at: &str| view.status().and_then(|status| text(status, at));
    let was_ready = before("/instanceId") == Some(id)
        && (before("/phase") == Some("Ready") || view.called_software_ready());
    if is_reported_elsewhere(view, id) {
        return None;
    }
    let pools = view
        .observed
        .iter()
        .filter(|(key, _)| key.starts_with("pool"));
    let pools = pools
        .map(|(_, pool)| pool)
        .filter(|pool| reads_console(pool) && is_pool(pool));
    let setups = pools.filter_map(|pool| {
        let instances = pool.pointer("/status/atProvider/instances")?.as_array()?;
        let instance = instances.iter().find(|i| text(i, "/id") == Some(id))?;
        Some(text(instance, "/setup/state").unwrap_or_default())
    });
    let mut states = setups.peekable();
    states.peek()?;
    let is_installed = |state: &str| state == "Ready" || (was_ready && state != "Failed");
    (!states.any(is_installed)).then(|| id.to_owned())
}

/// Whether a workspace may have a resource that cannot be read. It then keeps the phase of the last
/// call, and is not ready. Resources of provider-aws have many fields that may have a wrong type.
fn may_be_unreadable(view: &View) -> bool {
    let mut observed = view.observed.iter();
    observed.any(|(key, resource)| {
        if key.starts_with("pool") {
            !is_pool(resource)
        } else {
            is_own(key)
        }
    })
}

/// Whether a resource that reads no console reports the machine, too. Random changes give one id to two
/// resources, and then the machine may be that of the other one.
fn is_reported_elsewhere(view: &View, id: &str) -> bool {
    let mut observed = view.observed.iter();
    observed.any(|(key, resource)| {
        if !key.starts_with("pool") {
            return text(resource, "/status/atProvider/id") == Some(id);
        }
        let instances = resource.pointer("/status/atProvider/instances");
        let mut instances = instances.and_then(Value::as_array).into_iter().flatten();
        !reads_console(resource) && instances.any(|instance| text(instance, "/id") == Some(id))
    })
}

fn reads_console(pool: &Value) -> bool {
    pool.pointer("/spec/forProvider/readConsole") == Some(&true.into())
}

/// A host key of the response that would add something else to `known_hosts`.
fn strange_host_key(applied: &Applied<'_>) -> Option<String> {
    let keys = |status: &Value| {
        let keys = status.get("hostKeys").and_then(Value::as_array).cloned();
        keys.unwrap_or_default()
    };
    let before = applied.view.status().map(keys).unwrap_or_default();
    let new = keys(applied.status);
    let mut new = new.iter().filter(|key| !before.contains(key));
    let is_key = |key: &str| {
        let mut words = key.split(' ');
        let kind = words.next().unwrap_or_default();
        (kind.starts_with("ssh-") || kind.starts_with("ecdsa-"))
            && words.next().is_some_and(|data| data.starts_with("AAAA"))
            && words.next().is_none()
    };
    let strange = new.find(|key| !key.as_str().is_some_and(is_key))?;
    Some(strange.to_string())
}

/// A machine that the response starts although none is there.
fn started(applied: &Applied<'_>) -> Option<String> {
    let is_machine = |key: &str| is_compute(key) || key == "cluster-stateful-set";
    if applied.view.observed.keys().any(|key| is_machine(key)) {
        return None;
    }
    let own = |key: &&String| !applied.passed_on.contains(*key);
    let mut new = applied.desired.keys().filter(own);
    new.find_map(|key| match key {
        _ if is_hashed(key, "instance-") => Some(format!("{key} is new")),
        _ => compute::runs(key, &Value::Null, applied.desired),
    })
}
