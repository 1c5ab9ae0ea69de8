//! Rules that must hold at every moment.

use std::collections::BTreeMap;

use serde_json::Value;

use super::api_server::Id;
use super::cloud::asked;
use super::engine::Rendered;
use super::manifest::{self, EXTERNAL_NAME, condition, is_well, text};
use super::world::World;

const ADDRESS: &str = "/status/atProvider/publicIp";
const PRIVATE: &str = "/status/atProvider/privateIp";

/// Checks an answer that Crossplane is about to apply.
pub fn check_answer(world: &mut World, observed: &BTreeMap<String, Value>, rendered: &Rendered) {
    let mut wrong = Vec::new();
    let phase = text(&rendered.status, "/phase");
    if rendered.ready && phase != Some("Ready") {
        wrong.push(format!("the XR is Ready in phase {phase:?}"));
    }
    // Its software stays on a machine that a person stops and starts.
    let was_ready = text(&world.xr.status, "/phase") == Some("Ready");
    let set_up = text(&world.xr.status, "/instanceId").filter(|_| was_ready);
    if (rendered.ready || phase == Some("Ready"))
        && let Err(what) = usable(observed, rendered, set_up)
    {
        wrong.push(format!("Ready, but {what}"));
    }
    // At most two machines may be desired: the machine that serves and its successor. More may be
    // desired only while the function cannot tell which machine serves, or while it holds the
    // workspace. A machine that waits for its home to be detached does not count.
    let drains = |key: &str| {
        let used = format!("usage-{key}-by-");
        let instance = observed.get(key);
        let id = instance.and_then(|i| text(i, "/status/atProvider/id"));
        let mut attachments = world.api.of_kind("VolumeAttachment");
        observed.keys().any(|key| key.starts_with(&used))
            || attachments.any(|a| asked(a, "instanceId").as_deref() == id)
    };
    let machines = |key: &&String| key.starts_with("pool") || key.starts_with("instance-");
    let machines = rendered.desired.keys().filter(machines);
    let machines: Vec<&String> = machines.filter(|key| !drains(key)).collect();
    let recorded = text(&world.xr.status, "/instanceId");
    let serves = |instance: &&Value| {
        let runs = text(instance, "/status/atProvider/instanceState") == Some("running");
        runs && is_well(instance) && text(instance, "/status/atProvider/id") == recorded
    };
    let is_known = recorded.is_some() && observed.values().any(|o| serves(&o));
    let is_held = !rendered
        .conditions
        .iter()
        .any(|condition| condition["type"] == "ConfigResolved" && condition["status"] == "True");
    if is_known && !is_held && machines.len() > 2 {
        wrong.push(format!("{machines:?} are desired"));
    }
    for (key, desired) in &rendered.desired {
        let [kind, before] = [Some(desired), observed.get(key)].map(|o| o.map(|o| &o["kind"]));
        if before.is_some_and(|before| Some(before) != kind) {
            wrong.push(format!("{key} was a {before:?} and becomes a {kind:?}"));
        }
    }
    for event in &rendered.events {
        if event.starts_with("HomeReplaced") && !world.has_lost_track {
            wrong.push(event.clone());
        }
    }
    for what in wrong {
        world.violate(what);
    }
}

/// Whether the workspace can be used, according to the last reports of the providers. `set_up` is
/// the id of the machine that was ready before.
fn usable(
    observed: &BTreeMap<String, Value>,
    rendered: &Rendered,
    set_up: Option<&str>,
) -> Result<(), String> {
    let ssh = text(&rendered.status, "/ssh").ok_or("there is no address")?;
    let address = ssh.rsplit('@').next().unwrap_or_default();
    let has = |resource: &Value, pointer: &str| text(resource, pointer) == Some(address);
    let pools = observed.iter().filter(|(key, _)| key.starts_with("pool"));
    let on_spot = pools.into_iter().any(|(_, pool)| {
        let instances = pool.pointer("/status/atProvider/instances");
        let mut instances = instances.and_then(Value::as_array).into_iter().flatten();
        instances.any(|i| {
            let is_done = i.get("setup").is_none_or(|setup| setup["state"] == "Ready");
            let is_set_up = is_done || set_up.is_some_and(|id| i["id"] == id);
            i["state"] == "running" && is_set_up && (has(i, "/publicIp") || has(i, "/privateIp"))
        })
    });
    let instances = observed
        .iter()
        .filter(|(key, _)| key.starts_with("instance-"));
    let on_demand = instances.map(|(_, instance)| instance).find(|instance| {
        let runs = text(instance, "/status/atProvider/instanceState") == Some("running");
        let is_current = condition(instance, "Ready").is_some_and(|c| c.0 == "True");
        runs && is_current && (has(instance, ADDRESS) || has(instance, PRIVATE))
    });
    let vm = match (on_spot, on_demand) {
        (true, _) => return Ok(()),
        (false, Some(instance)) => text(instance, "/status/atProvider/id"),
        (false, None) => return Err(format!("no machine runs at {address}")),
    };
    if rendered.status.get("home").is_none_or(Value::is_null) {
        return Ok(());
    }
    let attachments = observed
        .iter()
        .filter(|(key, _)| key.starts_with("home-attachment-"));
    let mut attached = attachments
        .into_iter()
        .filter(|(_, a)| asked(a, "instanceId").as_deref() == vm)
        .filter(|(_, a)| condition(a, "Ready").is_some_and(|c| c.0 == "True"));
    let attachment = attached.next().map(|(_, attachment)| attachment);
    match attachment {
        None => Err("the home is not attached".to_owned()),
        Some(a) if rendered.ready && !is_well(a) => Err("the attachment is not well".to_owned()),
        Some(_) => Ok(()),
    }
}

/// Checks a deletion of a composed resource by Crossplane.
pub fn check_deletion(world: &mut World, key: &str, id: &Id) {
    let Some(manifest) = world.api.get(id).cloned() else {
        return;
    };
    let name = text(&manifest, EXTERNAL_NAME).unwrap_or_default();
    match id.kind.as_str() {
        "EBSVolume" | "SecurityGroup" => world.violate(format!("{key} is dropped")),
        "Instance" if !name.is_empty() => {
            let attachments: Vec<Value> = world.api.of_kind("VolumeAttachment").cloned().collect();
            let uses = |a: &Value| asked(a, "instanceId").as_deref() == Some(name);
            if attachments.iter().any(uses) {
                world.violate(format!("{key} is dropped while an attachment needs it"));
            }
        }
        _ => {}
    }
    if world.api.is_used(id) && manifest.pointer(manifest::DELETED).is_none() {
        world.note(|| format!("{key} has a Usage"));
    }
}

/// Checks a creation of a composed resource by Crossplane.
pub fn check_creation(world: &mut World, key: &str, object: &Value) {
    if text(object, "/kind") != Some("VolumeAttachment") {
        return;
    }
    let vm = asked(object, "instanceId");
    let others: Vec<Option<String>> = world
        .api
        .of_kind("VolumeAttachment")
        .map(|other| asked(other, "instanceId"))
        .collect();
    if let Some(other) = others.into_iter().find(|other| *other != vm) {
        world.violate(format!(
            "{key} is made for {vm:?} while there is one for {other:?}"
        ));
    }
}
