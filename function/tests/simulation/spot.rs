//! A simulation of this project's own provider. It keeps one machine per pool, and replaces a lost
//! machine.

use serde_json::{Value, json};

use super::api_server::Id;
use super::manifest::{self, text, written};
use super::world::World;

/// Reconciles a pool. Returns whether the provider wants to reconcile it again soon.
pub fn look(world: &mut World, id: &Id) -> bool {
    let Some(pool) = world.api.get(id).cloned() else {
        return false;
    };
    let uid = text(&pool, "/metadata/uid").unwrap_or_default().to_owned();
    let own = |world: &World| -> Vec<String> {
        let vms = world.cloud.vms.iter().filter(|(_, vm)| vm.owner == uid);
        vms.map(|(id, _)| id.clone()).collect()
    };
    let is_over = |world: &World, vm: &String| world.cloud.vms[vm].is_over();
    if pool.pointer(manifest::DELETED).is_some() {
        let vms: Vec<String> = own(world)
            .into_iter()
            .filter(|vm| !is_over(world, vm))
            .collect();
        if vms.is_empty() {
            world.api.release(id);
            return false;
        }
        for vm in &vms {
            world.cloud.terminate(vm);
        }
        return true;
    }
    world.api.guard(id);
    let is_gone = |world: &World, vm: &String| {
        matches!(world.cloud.vms[vm].state, "shutting-down" | "terminated")
    };
    if own(world).iter().all(|vm| is_gone(world, vm)) {
        launch(world, id, &pool, &uid);
    }
    report(world, id, &own(world))
}

fn launch(world: &mut World, id: &Id, pool: &Value, uid: &str) {
    let field = |name: &str| pool.pointer(&format!("/spec/forProvider/{name}"));
    let types = field("instanceTypes").and_then(Value::as_array);
    let types = types.into_iter().flatten().filter_map(Value::as_str);
    let faults = world.cloud.faults.clone();
    let has = |type_: &&str| !faults.no_capacity.contains(type_);
    let falls_back = text(pool, "/spec/forProvider/capacityType") == Some("SpotWithFallback");
    let offered: Vec<&str> = types.clone().filter(has).collect();
    let market = if faults.no_capacity.len() > 1 && falls_back && !faults.no_quota {
        types.clone().next().map(|type_| (type_, "OnDemand"))
    } else {
        offered.first().map(|type_| (*type_, "Spot"))
    };
    let Some((name, market)) = market else {
        let message = "no capacity for spec.forProvider.instanceTypes[0]";
        world
            .api
            .set_condition(id, written("Launched", false, "Capacity", message));
        return;
    };
    let made = [Some(name.to_owned()), None, None, None];
    let World { cloud, dice, .. } = world;
    let name = cloud.run(made, None, market, uid, dice);
    world.note(|| format!("EC2 launches {name} as {name}, {market}"));
    world
        .api
        .set_condition(id, written("Launched", true, "Launched", ""));
}

/// The console of an instance shows the end of its setup at the second look.
fn report(world: &mut World, id: &Id, vms: &[String]) -> bool {
    let pool = world.api.get(id).cloned().unwrap_or_default();
    let reads_console = pool.pointer("/spec/forProvider/readConsole") == Some(&json!(true));
    let before = pool.pointer("/status/atProvider/instances");
    let before = before.and_then(Value::as_array).into_iter().flatten();
    let running = before.filter(|instance| instance["state"] == "running");
    let running: Vec<&str> = running.filter_map(|one| text(one, "/id")).collect();
    let was_running = |name: &String| running.contains(&name.as_str());
    let instances: Vec<Value> = vms
        .iter()
        .enumerate()
        .map(|(n, name)| {
            let vm = &world.cloud.vms[name];
            let mut instance = json!({
                "id": name,
                "launch": n + 1,
                "instanceType": vm.made[0],
                "zone": vm.zone,
                "capacityType": vm.market,
                "imageId": "ami-00000000000c0de01",
                "state": vm.state,
                "privateIp": vm.private_ip,
            });
            if reads_console && vm.state == "running" {
                let state = if was_running(name) {
                    "Ready"
                } else {
                    "SettingUp"
                };
                instance["setup"] = json!({"state": state});
            }
            if let Some(address) = vm.public_ip.as_ref().filter(|_| vm.state == "running") {
                instance["publicIp"] = json!(address);
            }
            instance
        })
        .collect();
    let runs = vms.iter().any(|vm| world.cloud.vms[vm].state == "running");
    let is_stopped = vms.iter().any(|vm| world.cloud.vms[vm].state == "stopped");
    let waits = vms.iter().any(|vm| {
        matches!(
            world.cloud.vms[vm].state,
            "pending" | "stopping" | "shutting-down"
        )
    });
    world
        .api
        .edit(id, "/status/atProvider/instances", json!(instances));
    world
        .api
        .set_condition(id, written("Synced", true, "ReconcileSuccess", ""));
    let ready = match (runs, is_stopped) {
        (true, _) => written("Ready", true, "Available", ""),
        (false, true) => written("Ready", false, "Stopped", "an instance is stopped"),
        (false, false) => written("Ready", false, "Creating", "waiting for an instance"),
    };
    world.api.set_condition(id, ready);
    let is_setting_up = |one: &Value| one["setup"]["state"] == "SettingUp";
    waits || !runs || instances.iter().any(is_setting_up)
}
