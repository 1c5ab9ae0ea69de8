//! The provider's reconcile of `Instance`.

use serde_json::{Value, json};

use super::network::groups;
use super::{READY, fails, is_made, is_there, refuses};
use crate::simulation::api_server::Id;
use crate::simulation::cloud::{Vm, asked};
use crate::simulation::manifest::{self, EXTERNAL_NAME, text, written};
use crate::simulation::world::World;

const INTERFACE: &str = "/spec/forProvider/primaryNetworkInterface/networkInterfaceId";
/// The fields that describe the instance to launch.
const MADE_OF: [&str; 4] = ["instanceType", "ami", "userData", "subnetId"];

pub fn look(world: &mut World, id: &Id, manifest: &Value) -> bool {
    if !resolve_groups(world, id, manifest) {
        return true;
    }
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default().to_owned();
    let vm = world.cloud.vms.get(&name);
    let Some(vm) = vm.filter(|vm| !vm.is_over()).cloned() else {
        return launch(world, id, manifest);
    };
    if panics(world, &name, manifest) {
        return true;
    }
    take_over_tags(world, &name, manifest);
    initialise(world, id, &name, &vm);
    check(world, &name, &vm, manifest);
    if asked(manifest, "availabilityZone").is_some_and(|zone| zone != vm.zone) {
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

/// Resolves the security groups. Returns whether they are known.
fn resolve_groups(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let selector = "/spec/forProvider/vpcSecurityGroupIdSelector";
    match groups(world, manifest, selector) {
        Some(groups) if groups.is_empty() => {
            let message = "cannot resolve references: no resources matched selector";
            fails(world, id, message);
            return false;
        }
        Some(groups) => {
            let pointer = "/spec/forProvider/vpcSecurityGroupIds";
            world.api.edit(id, pointer, json!(groups));
        }
        None => {}
    }
    true
}

/// Whether the provider panics while it observes this instance. It panics if a volume is attached
/// that the instance did not make itself, and `volumeTags` are missing. Upjet recovers from the
/// panic, and the provider writes nothing to the object.
fn panics(world: &World, vm: &str, manifest: &Value) -> bool {
    world.cloud.volume_at(vm).is_some() && volume_tags(manifest).is_none()
}

fn volume_tags(manifest: &Value) -> Option<&Value> {
    let tags = manifest.pointer("/spec/forProvider/volumeTags")?;
    tags.as_object().filter(|tags| !tags.is_empty())?;
    Some(tags)
}

/// The provider gives every volume of the instance its `volumeTags`, and removes all other tags.
fn take_over_tags(world: &mut World, vm: &str, manifest: &Value) {
    let volume = world.cloud.volume_at(vm).map(str::to_owned);
    let volume = volume.and_then(|volume| world.cloud.volumes.get_mut(&volume));
    if let (Some(volume), Some(tags)) = (volume, volume_tags(manifest)) {
        volume.tags = tags.clone();
    }
}

/// Late initialisation: the provider writes EC2's choices into the spec, and asks for them from
/// then on.
fn initialise(world: &mut World, id: &Id, name: &str, vm: &Vm) {
    let zone = "/spec/forProvider/availabilityZone";
    world.api.edit(id, zone, json!(vm.zone));
    world.api.edit(id, INTERFACE, json!(interface(name)));
}

fn interface(vm: &str) -> String {
    vm.replacen("i-", "eni-", 1)
}

fn check(world: &mut World, name: &str, vm: &Vm, manifest: &Value) {
    for (field, was) in MADE_OF.iter().zip(&vm.made) {
        if *was != asked(manifest, field) {
            world.violate(format!("{name} runs and is asked for another {field}"));
        }
    }
}

/// Launches an instance. `status.atProvider` still shows the previous instance.
fn launch(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let made = MADE_OF.map(|field| asked(manifest, field));
    let type_ = made[0].clone().unwrap_or_default();
    world
        .api
        .set_condition(id, written(READY, false, "Creating", ""));
    if let Some(refusal) = refusal(world, manifest, &type_) {
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

/// The error with which EC2 refuses `RunInstances`, where it does. Late initialisation writes the
/// network interface into the spec. EC2 deletes the interface with its instance, so no later launch
/// can succeed.
fn refusal(world: &World, manifest: &Value, type_: &str) -> Option<String> {
    let faults = &world.cloud.faults;
    if let Some(interface) = text(manifest, INTERFACE) {
        return Some(format!(
            "InvalidNetworkInterfaceID.NotFound: The networkInterface ID '{interface}' does not \
             exist"
        ));
    }
    if faults.no_quota {
        let refusal = "VcpuLimitExceeded: You have requested more vCPU capacity";
        return Some(refusal.to_owned());
    }
    let is_out = faults.no_capacity.contains(&type_);
    let refusal = "InsufficientInstanceCapacity: We currently do not have sufficient capacity";
    is_out.then(|| refusal.to_owned())
}

pub fn delete(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default().to_owned();
    let Some(vm) = world.cloud.vms.get(&name).filter(|vm| !vm.is_over()) else {
        world.api.release(id);
        return false;
    };
    let is_ending = vm.state == "shutting-down";
    if panics(world, &name, manifest) {
        return true;
    }
    if !is_ending {
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
