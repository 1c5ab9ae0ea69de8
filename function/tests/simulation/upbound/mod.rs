//! A simulation of upbound's provider-aws-ec2, v2.5, as far as a workspace depends on it.
//!
//! The behaviour was taken from the provider's source and from the running provider. The function's
//! module `on_demand` has the facts. A look is one reconcile of one object. Each look changes EC2
//! at most once, so any event may happen between two looks.

mod home;
mod instance;
mod network;

use serde_json::{Value, json};

use super::api_server::Id;
use super::manifest::{self, written};
use super::world::World;

/// The kinds that have tags.
const TAGGED: [&str; 3] = ["EBSVolume", "Instance", "SecurityGroup"];
const SYNCED: &str = "Synced";
const READY: &str = "Ready";

/// Looks at an object. Returns whether the provider wants to look again soon.
pub fn look(world: &mut World, id: &Id) -> bool {
    let Some(manifest) = world.api.get(id).cloned() else {
        return false;
    };
    let is_going = manifest.pointer(manifest::DELETED).is_some();
    if is_going && !may(&manifest, "Delete") {
        world.api.release(id);
        return false;
    }
    let manifest = tag(world, id, manifest);
    let manifest = &manifest;
    if world.cloud.faults.is_blind {
        let message = "connect failed: cannot get ClusterProviderConfig \"default\"";
        fails(world, id, message);
        return true;
    }
    if !is_going {
        world.api.guard(id);
    }
    match id.kind.as_str() {
        "Instance" if is_going => instance::delete(world, id, manifest),
        "Instance" => instance::look(world, id, manifest),
        "EBSVolume" if is_going => home::delete_volume(world, id, manifest),
        "EBSVolume" => home::volume(world, id, manifest),
        "VolumeAttachment" if is_going => home::detach(world, id, manifest),
        "VolumeAttachment" => home::attachment(world, id, manifest),
        "SecurityGroup" if is_going => network::delete_group(world, id, manifest),
        "SecurityGroup" => network::group(world, id, manifest),
        "SecurityGroupRule" if is_going => {
            world.api.release(id);
            false
        }
        "SecurityGroupRule" => network::rule(world, id, manifest),
        kind => {
            world.violate(format!("nobody looks after a {kind}"));
            false
        }
    }
}

/// At every look, upjet first writes tags of its own into the spec.
fn tag(world: &mut World, id: &Id, manifest: Value) -> Value {
    if !TAGGED.contains(&id.kind.as_str()) {
        return manifest;
    }
    let kind = format!("{}.ec2.aws.m.upbound.io", id.kind.to_lowercase());
    for (name, value) in [
        ("kind", kind.as_str()),
        ("name", &id.name),
        ("providerconfig", "default"),
    ] {
        let pointer = format!("/spec/forProvider/tags/crossplane-{name}");
        world.api.edit(id, &pointer, json!(value));
    }
    world.api.get(id).cloned().unwrap_or(manifest)
}

fn may(manifest: &Value, action: &str) -> bool {
    let policies = manifest.pointer("/spec/managementPolicies");
    let policies = policies.and_then(Value::as_array);
    policies.is_none_or(|p| p.iter().any(|p| p == "*" || p == action))
}

fn fails(world: &mut World, id: &Id, message: &str) {
    world
        .api
        .set_condition(id, written(SYNCED, false, "ReconcileError", message));
}

/// The provider found the resource in EC2, and the resource matches its spec.
fn is_there(world: &mut World, id: &Id, at_provider: Value) {
    world.api.edit(id, "/status/atProvider", at_provider);
    world
        .api
        .set_condition(id, written(READY, true, "Available", ""));
    world
        .api
        .set_condition(id, written(SYNCED, true, "ReconcileSuccess", ""));
}

/// The provider began to create the resource.
fn is_made(world: &mut World, id: &Id) {
    world
        .api
        .set_condition(id, written(READY, false, "Creating", ""));
    world
        .api
        .set_condition(id, written(SYNCED, true, "ReconcileSuccess", ""));
}

/// Upjet's error for a field that cannot be changed.
fn refuses(world: &mut World, id: &Id, argument: &str, from: &str, to: &str) {
    fails(
        world,
        id,
        &format!(
            "update failed: refuse to update the external resource because the following update \
             requires replacing it: cannot change the value of the argument \"{argument}\" from \
             \"{from}\" to \"{to}\""
        ),
    );
}
