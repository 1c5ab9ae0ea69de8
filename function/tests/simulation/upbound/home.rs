//! The provider's reconcile of `EBSVolume` and `VolumeAttachment`.

use serde_json::{Value, json};

use super::{READY, fails, is_made, is_there, may, refuses};
use crate::simulation::api_server::Id;
use crate::simulation::cloud::{Hold, asked};
use crate::simulation::manifest::{EXTERNAL_NAME, text, written};
use crate::simulation::world::World;

pub fn volume(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).map(str::to_owned);
    let zone = asked(manifest, "availabilityZone").unwrap_or_default();
    let size = manifest.pointer("/spec/forProvider/size");
    let size = size.and_then(Value::as_i64).unwrap_or_default();
    let known = name
        .as_ref()
        .and_then(|name| world.cloud.volumes.get_mut(name));
    let (Some(name), Some(volume)) = (&name, known) else {
        if may(manifest, "Create") {
            return make_volume(world, id, manifest, size);
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
    volume.tags = tags(manifest);
    let is_elsewhere = volume.zone != zone;
    if is_elsewhere {
        world.violate(format!("{name} is asked to move to {zone}"));
    }
    is_there(world, id, json!({"id": name, "availabilityZone": zone}));
    false
}

fn make_volume(world: &mut World, id: &Id, manifest: &Value, size: i64) -> bool {
    let zone = asked(manifest, "availabilityZone").unwrap_or_default();
    let is_second = world
        .cloud
        .volumes
        .values()
        .any(|volume| volume.was_attached);
    if is_second && !world.has_lost_track {
        world.violate("a second home volume is made".to_owned());
    }
    let name = world.cloud.make_volume(&zone, size, tags(manifest));
    world.note(|| format!("EC2 makes {name} in {zone}"));
    world.api.edit(id, EXTERNAL_NAME, json!(name));
    is_made(world, id);
    true
}

/// The tags of a volume. A volume has the requested tags and no others.
fn tags(manifest: &Value) -> Value {
    let tags = manifest.pointer("/spec/forProvider/tags");
    tags.cloned().unwrap_or_default()
}

pub fn delete_volume(world: &mut World, id: &Id, manifest: &Value) -> bool {
    let name = text(manifest, EXTERNAL_NAME).unwrap_or_default();
    let volume = world.cloud.volumes.get(name);
    if volume.is_some_and(|volume| volume.attached.is_some()) {
        return true;
    }
    let uid = text(manifest, "/metadata/uid").unwrap_or_default();
    if !world.by_hand.contains(uid) {
        world.violate(format!("{name} is deleted, and nobody asked for it"));
    }
    // A person asked for this deletion, so the function may make a new volume.
    world.has_lost_track = true;
    world.cloud.volumes.remove(name);
    world.api.release(id);
    false
}

pub fn attachment(world: &mut World, id: &Id, manifest: &Value) -> bool {
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

pub fn detach(world: &mut World, id: &Id, manifest: &Value) -> bool {
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
