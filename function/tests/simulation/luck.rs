//! The random events in the life of a workspace.

use serde_json::{Value, json};

use super::api_server::Id;
use super::composite::reconcile;
use super::engine::Engine;
use super::manifest::{self, EXTERNAL_NAME, text};
use super::world::{World, catalogue, namespace, policy};

const TYPES: [&str; 3] = ["g4dn.xlarge", "g5.xlarge", "g4dn.2xlarge"];
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEfakefakefakefakefakefakefakefakefakefakefake";

/// The parameters of a claim, as a developer may first write them.
pub fn parameters(dice: &mut crate::dice::Dice) -> Value {
    let mut parameters = json!({"owner": "alice", "instanceType": *dice.pick(&TYPES)});
    match dice.below(4) {
        0 => parameters["capacityType"] = json!("SpotWithFallback"),
        1 => {}
        _ => parameters["capacityType"] = json!("OnDemand"),
    }
    if parameters["capacityType"] == "OnDemand" && dice.percent(75) {
        parameters["home"] = json!({"sizeGiB": 50});
    }
    parameters
}

/// Makes random events happen. Then some of the controllers work, chosen at random.
pub fn step(world: &mut World, engine: &mut impl Engine) -> Result<(), String> {
    for _ in 0..world.dice.below(3) {
        happen(world);
    }
    let mut dice = world.dice.clone();
    world.cloud.tick(|| dice.percent(70));
    world.dice = dice;
    for id in world.objects() {
        if world.dice.percent(70) {
            world.look(&id);
        }
    }
    if world.dice.percent(85) {
        reconcile(world, engine)?;
    }
    Ok(())
}

fn happen(world: &mut World) {
    let what = world.dice.below(100);
    let said = match what {
        0..=32 => wish(world),
        33..=49 => platform(world),
        50..=62 => fault(world),
        63..=84 => ec2(world),
        _ => person(world),
    };
    world.note(|| format!("- {said}"));
}

/// The developer changes the claim. A change that the claim's CRD would refuse does not happen.
fn wish(world: &mut World) -> String {
    let World { dice, xr, .. } = world;
    let parameters = &mut xr.parameters;
    let (field, value) = match dice.below(10) {
        0..=3 => ("instanceType", json!(*dice.pick(&TYPES))),
        4 => {
            let types = [
                json!([]),
                json!(["g5.xlarge"]),
                json!(["g4dn.2xlarge", "g4dn.xlarge"]),
            ];
            ("instanceTypes", dice.pick(&types).clone())
        }
        5 => {
            let market = *dice.pick(&["OnDemand", "OnDemand", "Spot", "SpotWithFallback"]);
            ("capacityType", json!(market))
        }
        6 => {
            let size = parameters.pointer("/home/sizeGiB").and_then(Value::as_i64);
            let size = size.map_or(50, |size| size + 10);
            ("home", json!({"sizeGiB": size}))
        }
        7 => {
            let networks: [&[&str]; 4] = [
                &[],
                &["10.1.0.0/16"],
                &["10.1.0.0/16", "192.0.2.0/28"],
                &["198.51.100.0/24"],
            ];
            ("ssh", json!({"allowedCidrs": *dice.pick(&networks)}))
        }
        8 => ("ssh", json!({"publicKeys": vec![KEY; dice.below(2)]})),
        _ => ("opencvVersion", json!(*dice.pick(&["4.8.0", "4.10.0"]))),
    };
    let mut wanted = parameters.clone();
    wanted[field] = value;
    let market = wanted.get("capacityType").and_then(Value::as_str);
    // The provider of SpotPools manages the homes of pools, and has its own simulation of them.
    if wanted.get("home").is_some() && market != Some("OnDemand") {
        return "nothing: a home of a pool".to_owned();
    }
    *parameters = wanted;
    format!("the claim asks for {field} {}", parameters[field])
}

/// The platform team or operations change the catalogue, the policy or the namespace.
fn platform(world: &mut World) -> String {
    let data = |world: &mut World, field: &str, value: Value| {
        let mut config = world.catalogue.clone().unwrap_or_else(catalogue);
        manifest::set(&mut config, &format!("/data/{field}"), value);
        world.catalogue = Some(config);
    };
    match world.dice.below(13) {
        0 => {
            world.catalogue = None;
            "the catalogue is deleted"
        }
        1 => {
            data(world, "image", json!({}));
            "the catalogue becomes invalid"
        }
        2 | 3 => {
            world.catalogue = Some(catalogue());
            "the catalogue is as it was"
        }
        4 => {
            data(
                world,
                "images/us-east-1/default/id",
                json!("ami-0000000000000beef"),
            );
            "the catalogue moves on to another image"
        }
        5 => {
            let subnets = *world.dice.pick(&["subnet-1", "subnet-2"]);
            let network = json!({"subnetIds": [subnets], "vpcId": "vpc-1"});
            data(world, "networks/us-east-1", network);
            "the catalogue names subnets"
        }
        6 => {
            data(
                world,
                "networks/us-east-1",
                json!({"securityGroupIds": ["sg-platform"]}),
            );
            "the catalogue names security groups"
        }
        7 => {
            world.policy["ownerBinding"] = json!({"namespaceLabel": "platform.acme.io/owner"});
            "owners are bound to namespaces"
        }
        8 => {
            world.namespace = match world.dice.below(3) {
                0 => None,
                1 => Some(namespace("bob")),
                _ => Some(namespace("alice")),
            };
            "the namespace is another's, or away"
        }
        9 => {
            let rolls = world.dice.percent(50);
            let centre = *world.dice.pick(&["research", "robotics"]);
            world.policy["instance"] = json!({
                "sudo": true,
                "replaceOnUserDataChange": rolls,
                "tags": {"cost-center": centre},
            });
            "replaceOnUserDataChange is on or off, and there is another tag"
        }
        10 => {
            let on_delete = *world.dice.pick(&["Retain", "Delete"]);
            world.policy["home"] = json!({"onDelete": on_delete});
            "onDelete is Retain or Delete"
        }
        11 if world.dice.percent(50) => {
            world.policy = Value::Null;
            "the policy is taken out"
        }
        11 => {
            world.policy["nonsense"] = json!(true);
            "the policy becomes invalid"
        }
        _ => {
            world.policy = policy();
            "the policy is as it was"
        }
    }
    .to_owned()
}

fn fault(world: &mut World) -> String {
    let percent = |world: &mut World, percent| world.dice.percent(percent);
    match world.dice.below(6) {
        0 => world.cloud.faults.no_quota = percent(world, 50),
        1 => {
            let count = world.dice.below(3);
            world.cloud.faults.no_capacity = TYPES[..count].to_vec();
        }
        2 => world.cloud.faults.is_blind = percent(world, 50),
        3 => world.cloud.faults.never_boots = percent(world, 50),
        4 => world.cloud.faults.is_slow = percent(world, 50),
        _ => world.cloud.faults = super::cloud::Faults::default(),
    }
    format!("{:?}", world.cloud.faults)
}

/// EC2 changes a machine, or a person changes it in the console.
fn ec2(world: &mut World) -> String {
    let vms = world.cloud.vms.iter().filter(|(_, vm)| !vm.is_over());
    let ids: Vec<String> = vms.map(|(id, _)| id.clone()).collect();
    let Some(id) = world.dice.any(ids) else {
        return "nothing: there is no machine".to_owned();
    };
    if world.dice.percent(15) {
        return outage(world);
    }
    let kind = world.dice.below(4);
    let is_detaching = world.cloud.volume_at(&id).is_some();
    let number = world.cloud.next();
    let Some(vm) = world.cloud.vms.get_mut(&id) else {
        return String::new();
    };
    match (kind, vm.state) {
        (0 | 1, "pending" | "running" | "stopped") => {
            vm.state = "shutting-down";
            vm.public_ip = None;
            format!("{id} is lost")
        }
        (2, "running") => {
            vm.state = "stopping";
            vm.public_ip = None;
            format!("{id} is stopped by somebody")
        }
        (_, "stopped") if !is_detaching => {
            vm.state = "pending";
            vm.public_ip = vm.made[3].is_none().then(|| format!("203.0.113.{number}"));
            format!("{id} is started by somebody")
        }
        _ => format!("nothing happens to {id}"),
    }
}

/// EC2 loses every machine at once, so that also the machine that follows a lost machine is lost.
fn outage(world: &mut World) -> String {
    let vms = world.cloud.vms.values_mut();
    for vm in vms.filter(|vm| matches!(vm.state, "pending" | "running" | "stopped")) {
        vm.state = "shutting-down";
        vm.public_ip = None;
    }
    "every machine is lost".to_owned()
}

/// A person deletes or restores an object with kubectl.
fn person(world: &mut World) -> String {
    match world.dice.below(8) {
        0 => {
            world.xr.status = json!({});
            world.xr.conditions.clear();
            world.has_lost_status = true;
            let home = world.api.of_kind("EBSVolume").next();
            let is_going = |home: &Value| home.pointer(manifest::DELETED).is_some();
            world.has_lost_track |= home.is_none_or(is_going);
            "the XR is restored without its status".to_owned()
        }
        kind => {
            let kind = [
                "EBSVolume",
                "VolumeAttachment",
                "Instance",
                "SpotPool",
                "SecurityGroup",
                "SecurityGroupRule",
                "Secret",
            ][kind - 1];
            delete(world, kind)
        }
    }
}

fn delete(world: &mut World, kind: &str) -> String {
    let ids: Vec<Id> = world
        .objects()
        .into_iter()
        .filter(|id| id.kind == kind)
        .collect();
    let Some(id) = world.dice.any(ids) else {
        return format!("nothing: there is no {kind}");
    };
    let Some(manifest) = world.api.get(&id) else {
        return String::new();
    };
    let key = text(manifest, manifest::KEY).unwrap_or_default().to_owned();
    let uid = text(manifest, "/metadata/uid")
        .unwrap_or_default()
        .to_owned();
    let volume = text(manifest, EXTERNAL_NAME).unwrap_or_default();
    let recorded = text(&world.xr.status, "/home/volumeId");
    let is_unrecorded = kind == "EBSVolume" && recorded != Some(volume);
    if world.api.delete(&id).is_err() {
        return format!("somebody may not delete {key}: it is in use");
    }
    world.by_hand.insert(uid);
    world.has_lost_track |= is_unrecorded;
    world.has_home_deleted_by_hand |= kind == "EBSVolume";
    format!("somebody deletes {key}")
}

/// Does what people would do in the end: ends all faults, and repairs the policy, the catalogue,
/// the namespace and the claim.
pub fn mend(world: &mut World) {
    world.cloud.faults = super::cloud::Faults::default();
    let instance = world.policy.get("instance").cloned();
    let home = world.policy.get("home").cloned();
    let binding = world.policy.get("ownerBinding").cloned();
    world.policy = policy();
    for (field, value) in [
        ("instance", instance),
        ("home", home),
        ("ownerBinding", binding),
    ] {
        if let Some(value) = value {
            world.policy[field] = value;
        }
    }
    let network = world.catalogue.as_ref();
    let network = network.and_then(|c| c.pointer("/data/networks/us-east-1").cloned());
    let mut config = catalogue();
    if let Some(network) = network {
        manifest::set(&mut config, "/data/networks/us-east-1", network);
    }
    // The catalogue may lose other entries, but it must list an image that a machine has booted.
    let images = "/data/images/us-east-1/beef/id";
    manifest::set(&mut config, images, json!("ami-0000000000000beef"));
    world.catalogue = Some(config);
    world.namespace = Some(namespace("alice"));
    let has_home = world.xr.parameters.get("home").is_some();
    if has_home {
        world.xr.parameters["capacityType"] = json!("OnDemand");
    }
    start_stopped(world);
    world.note(|| "everything is mended".to_owned());
}

/// A person starts every stopped machine, as the messages ask. Returns whether there was one.
pub fn start_stopped(world: &mut World) -> bool {
    let vms = world.cloud.vms.iter();
    let stopped = vms.filter(|(_, vm)| matches!(vm.state, "stopping" | "stopped"));
    let stopped: Vec<String> = stopped.map(|(id, _)| id.clone()).collect();
    for id in &stopped {
        let number = world.cloud.next();
        if let Some(vm) = world.cloud.vms.get_mut(id) {
            vm.state = "pending";
            vm.public_ip = vm.made[3].is_none().then(|| format!("203.0.113.{number}"));
        }
    }
    !stopped.is_empty()
}
