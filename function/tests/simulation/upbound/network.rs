//! The provider's reconcile of `SecurityGroup` and `SecurityGroupRule`.

use serde_json::{Value, json};

use super::{fails, is_made, is_there};
use crate::simulation::api_server::Id;
use crate::simulation::manifest::{EXTERNAL_NAME, text};
use crate::simulation::world::World;

pub fn group(world: &mut World, id: &Id, manifest: &Value) -> bool {
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

pub fn delete_group(world: &mut World, id: &Id, manifest: &Value) -> bool {
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

pub fn rule(world: &mut World, id: &Id, manifest: &Value) -> bool {
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

/// The groups that a selector matches, or `None` without a selector.
pub fn groups(world: &World, manifest: &Value, selector: &str) -> Option<Vec<String>> {
    manifest.pointer(selector)?;
    let groups = world.api.of_kind("SecurityGroup");
    let names = groups.filter_map(|group| text(group, EXTERNAL_NAME).map(str::to_owned));
    Some(names.collect())
}
