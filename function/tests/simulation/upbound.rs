//! upbound's provider-aws-ec2, v2.5, as far as a workspace sees it.
//!
//! What it does follows its source: see the facts in the function's module
//! `on_demand`. A look is one reconcile of one object; each changes EC2 at most
//! once, so that anything may happen between two of them.

use serde_json::{Value, json};

use super::api_server::Id;
use super::cloud::{Hold, asked};
use super::manifest::{self, EXTERNAL_NAME, text, written};
use super::world::World;

const SYNCED: &str = "Synced";
const READY: &str = "Ready";

/// Looks at an object. Answers whether the provider wants to look again soon.
pub fn look(world: &mut World, id: &Id) -> bool {
    let Some(manifest) = world.api.get(id).cloned() else {
        return false;
    };
    let manifest = &manifest;
    if world.cloud.faults.is_blind {
        let message = "connect failed: cannot get ClusterProviderConfig \"default\"";
        fails(world, id, message);
        return true;
    }
    let is_going = manifest.pointer(manifest::DELETED).is_some();
    if is_going && !may(manifest, "Delete") {
        world.api.release(id);
        return false;
    }
    if !is_going {
        world.api.guard(id);
    }
    match id.kind.as_str() {
        "Instance" if is_going => delete_instance(world, id, manifest),
        "Instance" => instance(world, id, manifest),
        "EBSVolume" if is_going => delete_volume(world, id, manifest),
        "EBSVolume" => volume(world, id, manifest),
        "VolumeAttachment" if is_going => detach(world, id, manifest),
        "VolumeAttachment" => attachment(world, id, manifest),
        "SecurityGroup" if is_going => delete_group(world, id, manifest),
        "SecurityGroup" => group(world, id, manifest),
        "SecurityGroupRule" if is_going => {
            world.api.release(id);
            false
        }
        "SecurityGroupRule" => rule(world, id, manifest),
        kind => {
            world.violate(format!("nobody looks after a {kind}"));
            false
        }
    }
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

/// The provider found it, and it is as it should be.
fn is_there(world: &mut World, id: &Id, at_provider: Value) {
    world.api.edit(id, "/status/atProvider", at_provider);
    world
        .api
        .set_condition(id, written(READY, true, "Available", ""));
    world
        .api
        .set_condition(id, written(SYNCED, true, "ReconcileSuccess", ""));
}

/// The provider began to make it.
fn is_made(world: &mut World, id: &Id) {
    world
        .api
        .set_condition(id, written(READY, false, "Creating", ""));
    world
        .api
        .set_condition(id, written(SYNCED, true, "ReconcileSuccess", ""));
}

/// What upjet says when something cannot be changed.
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

fn instance(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let groups = match groups(
        world,
        manifest,
        "/spec/forProvider/vpcSecurityGroupIdSelector",
    ) {
        Some(groups) if groups.is_empty() => {
            fails(
                world,
                id,
                "cannot resolve references: no resources matched selector",
            );
            return true;
        }
        Some(groups) => groups,
        None => Vec::new(),
    };
    if !groups.is_empty() {
        let pointer = "/spec/forProvider/vpcSecurityGroupIds";
        world.api.edit(id, pointer, json!(groups));
    }
    let asked = |field: &str| asked(manifest, field);
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default().to_owned();
    let vm = world
        .cloud
        .vms
        .get(&name)
        .filter(|vm| !vm.is_over())
        .cloned();
    let made = ["instanceType", "ami", "userData", "subnetId"].map(asked);
    let Some(vm) = vm else {
        return launch(world, id, manifest, made);
    };
    world
        .api
        .edit(id, "/spec/forProvider/availabilityZone", json!(vm.zone));
    for (n, (was, is)) in vm.made.iter().zip(&made).enumerate() {
        if was != is {
            let field = ["instanceType", "ami", "userData", "subnetId"][n];
            world.violate(format!("{name} runs and is asked for another {field}"));
        }
    }
    if asked("availabilityZone").is_some_and(|zone| zone != vm.zone) {
        world.violate(format!("{name} is asked to move to another zone"));
        refuses(world, id, "availability_zone", &vm.zone, "");
        return false;
    }
    let mut seen = json!({
        "id": name,
        "instanceState": vm.state,
        "instanceType": vm.made[0],
        "availabilityZone": vm.zone,
        "privateIp": vm.private_ip,
    });
    if let Some(address) = vm.public_ip.filter(|_| vm.state == "running") {
        seen["publicIp"] = json!(address);
    }
    is_there(world, id, seen);
    if manifest::condition(manifest, "LastAsyncOperation").is_some() {
        world
            .api
            .set_condition(id, written("LastAsyncOperation", true, "Success", ""));
    }
    matches!(vm.state, "pending" | "stopping" | "shutting-down")
}

fn launch(world: &mut World, id: &Id, manifest: &Value, made: [Option<String>; 4]) -> bool {
    let type_ = made[0].clone().unwrap_or_default();
    let faults = &world.cloud.faults;
    let refusal = if faults.no_quota {
        Some("VcpuLimitExceeded: You have requested more vCPU capacity")
    } else if faults.no_capacity.iter().any(|t| *t == type_) {
        Some("InsufficientInstanceCapacity: We currently do not have sufficient capacity")
    } else {
        None
    };
    world
        .api
        .set_condition(id, written(READY, false, "Creating", ""));
    if let Some(refusal) = refusal {
        let request = world.dice.below(1 << 30);
        let message = format!(
            "async create failed: failed to create the resource: [{{0 creating EC2 Instance: \
             operation error EC2: RunInstances, https response error StatusCode: 400, \
             RequestID: {request:08x}-5c53-4b6a-9d1b-0d1b6ef0a7c5, api error {refusal} []}}]"
        );
        fails(world, id, &format!("create failed: {message}"));
        let failed = written("LastAsyncOperation", false, "AsyncCreateFailure", &message);
        world.api.set_condition(id, failed);
        return true;
    }
    let zone = asked(manifest, "availabilityZone");
    let uid = text(manifest, "/metadata/uid")
        .unwrap_or_default()
        .to_owned();
    let World { cloud, dice, .. } = world;
    let name = cloud.run(made, zone.as_deref(), "OnDemand", &uid, dice);
    world.note(|| format!("EC2 launches {name} as {type_}"));
    world.api.edit(id, EXTERNAL_NAME, json!(name));
    is_made(world, id);
    world
        .api
        .set_condition(id, written("LastAsyncOperation", true, "Success", ""));
    true
}

fn delete_instance(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default().to_owned();
    let Some(vm) = world.cloud.vms.get(&name).filter(|vm| !vm.is_over()) else {
        world.api.release(id);
        return false;
    };
    if vm.state != "shutting-down" {
        let uid = text(manifest, "/metadata/uid").unwrap_or_default();
        if let Some(volume) = world.cloud.volume_at(&name).map(str::to_owned)
            && !world.by_hand.contains(uid)
            && !world.has_lost_track
        {
            world.violate(format!("{name} is terminated while it has {volume}"));
        }
        world.note(|| format!("EC2 terminates {name}"));
        world.cloud.terminate(&name);
    }
    world
        .api
        .set_condition(id, written(READY, false, "Deleting", ""));
    true
}

fn volume(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).map(str::to_owned);
    let zone = asked(manifest, "availabilityZone").unwrap_or_default();
    let size = manifest.pointer("/spec/forProvider/size");
    let size = size.and_then(Value::as_i64).unwrap_or_default();
    let known = name
        .as_ref()
        .and_then(|name| world.cloud.volumes.get_mut(name));
    let (Some(name), Some(volume)) = (&name, known) else {
        if may(manifest, "Create") {
            return make_volume(world, id, &zone, size);
        }
        match name {
            Some(_) => refuses(world, id, "availability_zone", "", &zone),
            None => fails(
                world,
                id,
                "observe failed: external resource does not exist",
            ),
        }
        return false;
    };
    if size < volume.size {
        let what = format!("{name} is asked to shrink to {size} GiB");
        world.violate(what);
        return false;
    }
    volume.size = size;
    let is_elsewhere = volume.zone != zone;
    if is_elsewhere {
        world.violate(format!("{name} is asked to move to {zone}"));
    }
    is_there(world, id, json!({"id": name, "availabilityZone": zone}));
    false
}

fn make_volume(world: &mut World, id: &Id, zone: &str, size: i64) -> bool {
    let is_second = world
        .cloud
        .volumes
        .values()
        .any(|volume| volume.was_attached);
    if is_second && !world.has_lost_track {
        world.violate("a second home volume is made".to_owned());
    }
    let name = world.cloud.make_volume(zone, size);
    world.note(|| format!("EC2 makes {name} in {zone}"));
    world.api.edit(id, EXTERNAL_NAME, json!(name));
    is_made(world, id);
    true
}

fn delete_volume(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default();
    let volume = world.cloud.volumes.get(name);
    if volume.is_some_and(|volume| volume.attached.is_some()) {
        return true;
    }
    let uid = text(manifest, "/metadata/uid").unwrap_or_default();
    if !world.by_hand.contains(uid) {
        world.violate(format!("{name} is deleted, and nobody asked for it"));
    }
    // A person asked for it: whatever follows begins anew.
    world.has_lost_track = true;
    world.cloud.volumes.remove(name);
    world.api.release(id);
    false
}

fn attachment(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let vm_id = asked(manifest, "instanceId").unwrap_or_default();
    let volume_id = asked(manifest, "volumeId").unwrap_or_default();
    let was = |field: &str| text(manifest, &format!("/status/atProvider/{field}"));
    let is_other = was("instanceId").is_some_and(|was| was != vm_id)
        || was("volumeId").is_some_and(|was| was != volume_id);
    if is_other && !world.has_lost_track {
        world.violate("an attachment is asked to change its ends".to_owned());
    }
    let vm = world
        .cloud
        .vms
        .get(&vm_id)
        .filter(|vm| !vm.is_over())
        .cloned();
    let Some(volume) = world.cloud.volumes.get_mut(&volume_id) else {
        fails(
            world,
            id,
            &format!("create failed: api error InvalidVolume.NotFound: {volume_id}"),
        );
        return false;
    };
    match (volume.attached.clone(), vm) {
        (Some((at, Hold::Attached)), Some(_)) if at == vm_id => {
            let seen = json!({"id": "vai-1", "instanceId": vm_id, "volumeId": volume_id});
            world.api.edit(id, EXTERNAL_NAME, json!("vai-1"));
            is_there(world, id, seen);
            false
        }
        (Some((at, Hold::Attaching)), Some(_)) if at == vm_id => true,
        (Some((at, _)), _) if at != vm_id => {
            world.violate(format!(
                "{volume_id} is to be attached to {vm_id} while {at} has it"
            ));
            fails(
                world,
                id,
                "create failed: api error VolumeInUse: it is attached",
            );
            true
        }
        (_, None) => {
            world
                .api
                .set_condition(id, written(READY, false, "Creating", ""));
            let message = format!("create failed: waiting for {vm_id}: state 'terminated'");
            fails(world, id, &message);
            true
        }
        (_, Some(vm)) if vm.zone != volume.zone => {
            world.violate(format!("{vm_id} is not in the zone of {volume_id}"));
            fails(
                world,
                id,
                "create failed: api error InvalidVolume.ZoneMismatch: ",
            );
            false
        }
        (None, Some(vm)) if vm.state == "running" => {
            volume.attached = Some((vm_id, Hold::Attaching));
            is_made(world, id);
            true
        }
        (_, Some(vm)) => {
            world
                .api
                .set_condition(id, written(READY, false, "Creating", ""));
            let message = format!("create failed: waiting for {vm_id}: state '{}'", vm.state);
            fails(world, id, &message);
            true
        }
    }
}

fn detach(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let vm_id = asked(manifest, "instanceId").unwrap_or_default();
    let volume_id = asked(manifest, "volumeId").unwrap_or_default();
    let volume = world.cloud.volumes.get_mut(&volume_id);
    let Some(volume) = volume.filter(|v| v.attached.as_ref().is_some_and(|(at, _)| *at == vm_id))
    else {
        world.api.release(id);
        return false;
    };
    let stops = asked_to_stop(manifest);
    match world.cloud.vms.get_mut(&vm_id) {
        Some(vm) if stops && matches!(vm.state, "pending" | "running") => {
            vm.state = "stopping";
            vm.public_ip = None;
        }
        Some(vm) if stops && matches!(vm.state, "stopping" | "shutting-down") => {}
        _ => volume.attached = Some((vm_id, Hold::Detaching)),
    }
    true
}

fn asked_to_stop(manifest: &Value) -> bool {
    manifest.pointer("/spec/forProvider/stopInstanceBeforeDetaching") == Some(&Value::Bool(true))
}

fn group(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default().to_owned();
    if world.cloud.groups.contains(&name) {
        is_there(world, id, json!({"id": name}));
        return false;
    }
    let name = format!("sg-{:017x}", world.cloud.next());
    world.cloud.groups.push(name.clone());
    world.api.edit(id, EXTERNAL_NAME, json!(name));
    is_made(world, id);
    true
}

fn delete_group(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default().to_owned();
    let field = "/spec/forProvider/vpcSecurityGroupIds/0";
    let is_in_use = world.api.of_kind("Instance").any(|instance| {
        let vm = text(instance, EXTERNAL_NAME).and_then(|vm| world.cloud.vms.get(vm));
        text(instance, field) == Some(&name) && vm.is_some_and(|vm| !vm.is_over())
    });
    if is_in_use {
        return true;
    }
    world.cloud.groups.retain(|group| *group != name);
    world.api.release(id);
    false
}

fn rule(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let groups = groups(world, manifest, "/spec/forProvider/securityGroupIdSelector");
    let Some(group) = groups.and_then(|groups| groups.first().cloned()) else {
        fails(
            world,
            id,
            "cannot resolve references: no resources matched selector",
        );
        return true;
    };
    world
        .api
        .edit(id, "/spec/forProvider/securityGroupId", json!(group));
    let cidrs = manifest.pointer("/spec/forProvider/cidrBlocks");
    let cidrs = cidrs.cloned().unwrap_or_default();
    let made = manifest.pointer("/status/atProvider/cidrBlocks");
    if made.is_some_and(|made| *made != cidrs) {
        world.violate("a rule is asked for another network".to_owned());
    }
    is_there(world, id, json!({"id": "sgrule-1", "cidrBlocks": cidrs}));
    false
}

/// The groups that a selector matches; none where there is no selector.
fn groups(world: &World, manifest: &Value, selector: &str) -> Option<Vec<String>> {
    manifest.pointer(selector)?;
    let groups = world.api.of_kind("SecurityGroup");
    let names = groups.filter_map(|group| text(group, EXTERNAL_NAME).map(str::to_owned));
    Some(names.collect())
}
