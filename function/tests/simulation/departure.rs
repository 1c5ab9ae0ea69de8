//! Deletes the claim. Crossplane does not call the function any more. Kubernetes deletes every
//! composed resource, in any order, and repeats every refused deletion.

use super::manifest::text;
use super::world::World;

/// After more rounds than this, the deletion hangs.
const ROUNDS: usize = 100;

/// Deletes the claim. Returns an error if an object, a machine or a group is left, or if the policy
/// and the fate of the home volume differ.
pub fn delete(world: &mut World) -> Result<(), String> {
    let home = world.api.of_kind("EBSVolume").next().cloned();
    let is_deleted = home.as_ref().is_some_and(|home| {
        let policies = home.pointer("/spec/managementPolicies/0");
        policies.is_some_and(|policy| policy == "*")
    });
    if let Some(home) = home.filter(|_| is_deleted) {
        let uid = text(&home, "/metadata/uid").map(str::to_owned);
        world.by_hand.extend(uid);
    }
    let volumes = world.cloud.volumes.len();
    for _ in 0..ROUNDS {
        let mut ids = world.objects();
        if ids.is_empty() {
            break;
        }
        while !ids.is_empty() {
            let id = ids.swap_remove(world.dice.below(ids.len()));
            drop(world.api.delete(&id));
        }
        for id in world.objects() {
            world.look(&id);
        }
        world.cloud.tick(|| true);
    }
    let left = world.objects();
    if !left.is_empty() {
        return Err(format!("deleted, but {left:?} stay"));
    }
    let cloud = &world.cloud;
    let machine = cloud
        .vms
        .iter()
        .find(|(_, vm)| !vm.is_over() && vm.state != "shutting-down");
    if let Some((id, _)) = machine {
        return Err(format!("deleted, but {id} runs"));
    }
    if !cloud.groups.is_empty() {
        return Err(format!("deleted, but {:?} stay", cloud.groups));
    }
    let is_kept = cloud.volumes.len() == volumes;
    if volumes > 0 && is_kept == is_deleted {
        return Err(format!(
            "the policy deletes homes: {is_deleted}, {:?}",
            cloud.volumes
        ));
    }
    Ok(())
}
