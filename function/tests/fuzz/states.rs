//! The reports of providers about composed resources, good and bad.

use serde_json::{Map, Value, json};

use crate::corpus::object;
use crate::dice::Dice;
use crate::hostile;

/// The time of every event in a request.
pub const TIME: &str = "2026-11-20T10:00:05Z";

const IDS: [&str; 6] = [
    "i-0000000000000a11ce",
    "i-0000000000000c0c00",
    "i-00000000000000b0b0",
    "i-1",
    "i-2",
    "",
];
const VOLUMES: [&str; 4] = ["vol-0000000000000a11c", "vol-1", "vol-2", ""];
const TYPES: [&str; 5] = [
    "g4dn.xlarge",
    "g5.xlarge",
    "g4dn.2xlarge",
    "p5.48xlarge",
    "",
];
const ZONES: [&str; 4] = ["us-east-1a", "us-east-1b", "eu-west-1a", ""];
const STATES: [&str; 8] = [
    "pending",
    "running",
    "stopping",
    "stopped",
    "shutting-down",
    "terminated",
    "unknown",
    "",
];
const ADDRESSES: [&str; 4] = ["198.51.100.17", "198.51.100.18", "10.0.0.4", ""];
const HOST_KEYS: [&str; 3] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
    "* ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
    "ssh-ed25519 no-key",
];
/// Messages of failed calls to EC2. `conditions` replaces `ID` by a random request id.
const FAILURES: [&str; 7] = [
    "create failed: async create failed: failed to create the resource: [{0 creating EC2 \
     Instance: operation error EC2: RunInstances, https response error StatusCode: 400, \
     RequestID: ID, api error VcpuLimitExceeded: You have requested more vCPU capacity. []}]",
    "create failed: operation error EC2: RunInstances, https response error StatusCode: 403, \
     RequestID: ID, api error UnauthorizedOperation: You are not authorized. Encoded \
     authorization failure message: 4wTX",
    "observe failed: https response error StatusCode: 503, RequestID: ID, deserialization failed",
    "create failed: exceeded maximum number of attempts, 3, https response error StatusCode: \
     500, RequestID: ID, api error InsufficientInstanceCapacity: no capacity",
    "update failed: refuse to update the external resource because the following update \
     requires replacing it: cannot change the value of the argument \"availability_zone\" from \
     \"\" to \"us-east-1a\"",
    "connect failed: cannot get ClusterProviderConfig \"default\"",
    "",
];

/// An id of an instance. The id may also occur elsewhere in the request.
pub fn id(dice: &mut Dice) -> &'static str {
    dice.pick::<&'static str>(&IDS)
}

/// Changes an observed resource, or an attachment that Crossplane fetched.
pub fn change(request: &mut Value, dice: &mut Dice) {
    let of_request = |request: &mut Value| -> Vec<String> {
        let resources = object(request, &["observed", "resources"]);
        resources.keys().cloned().collect()
    };
    if dice.percent(15) {
        let answers = object(request, &["requiredResources", "attachments"]);
        let items = answers.get_mut("items").and_then(Value::as_array_mut);
        let items = items.into_iter().flatten();
        let mut resources: Vec<&mut Value> =
            items.filter_map(|item| item.get_mut("resource")).collect();
        if !resources.is_empty() {
            let at = dice.below(resources.len());
            managed(resources.swap_remove(at), dice);
        }
        return;
    }
    let Some(key) = dice.any(of_request(request)) else {
        return;
    };
    let resource = object(request, &["observed", "resources", &key])
        .entry("resource")
        .or_insert_with(|| json!({}));
    if key.starts_with("pool") {
        pool(resource, dice);
    } else {
        managed(resource, dice);
    }
}

/// Changes what decides about a home volume and its instance: size, zones and id, what Crossplane knows
/// of attachments, and whether the provider sees the instance.
pub fn home(request: &mut Value, dice: &mut Dice) {
    let composed = object(request, &["observed", "resources"]);
    let instances = composed.keys().filter(|key| key.starts_with("instance-"));
    let instance = dice.any(instances.cloned());
    let zone = json!(*dice.pick(&ZONES));
    let of_instance = instance.and_then(|key| composed.get_mut(&key)?.get_mut("resource"));
    match (dice.below(10), of_instance) {
        (0, Some(instance)) => put(instance, "spec/forProvider", "availabilityZone", zone),
        (7.., Some(instance)) => {
            let unseen = json!([
                {"type": "Ready", "status": "True", "reason": "Available"},
                {"type": "Synced", "status": "False", "reason": "ReconcileError"},
            ]);
            put(instance, "status", "conditions", unseen);
        }
        (change @ (1 | 2), _) => {
            if change == 1 {
                composed.retain(|key, _| !key.starts_with("home-attachment-"));
            }
            if change == 2 || dice.percent(50) {
                object(request, &["requiredResources"]).remove("attachments");
            }
        }
        (change, _) => {
            let Some(home) = composed.get_mut("home").and_then(|h| h.get_mut("resource")) else {
                return;
            };
            let (at, field, value) = match change {
                3 => ("spec/forProvider", "size", json!(20 + dice.below(200))),
                4 => ("spec/forProvider", "availabilityZone", zone),
                _ => {
                    let id = json!(*dice.pick(&VOLUMES));
                    ("metadata/annotations", "crossplane.io/external-name", id)
                }
            };
            put(home, at, field, value);
        }
    }
}

fn managed(resource: &mut Value, dice: &mut Dice) {
    let text = |texts: &[&str], dice: &mut Dice| json!(*dice.pick(texts));
    match dice.below(14) {
        0..=3 => conditions(resource, dice),
        4 | 5 => put(
            resource,
            "status/atProvider",
            "instanceState",
            text(&STATES, dice),
        ),
        6 => {
            let id = json!(id(dice));
            put(resource, "status/atProvider", "id", id.clone());
            put(
                resource,
                "metadata/annotations",
                "crossplane.io/external-name",
                id,
            );
        }
        7 => {
            let field = *dice.pick(&["publicIp", "privateIp"]);
            put(resource, "status/atProvider", field, text(&ADDRESSES, dice));
        }
        8 => {
            let at = *dice.pick(&["status/atProvider", "spec/forProvider"]);
            put(resource, at, "availabilityZone", text(&ZONES, dice));
        }
        9 => put(
            resource,
            "spec/forProvider",
            "instanceType",
            text(&TYPES, dice),
        ),
        10 => {
            put(resource, "spec/forProvider", "instanceId", json!(id(dice)));
            put(
                resource,
                "spec/forProvider",
                "volumeId",
                text(&VOLUMES, dice),
            );
        }
        11 => deletion(resource, dice),
        12 => {
            let name = *dice.pick(&["a", "b", "", "alice-vision-x7k2p-20f4079065f5"]);
            put(resource, "metadata", "name", json!(name));
        }
        _ => {
            let field = *dice.pick(&["size", "userData", "ami", "subnetId", "vpcId", "tags"]);
            let value = hostile::value(dice);
            put(resource, "spec/forProvider", field, value);
        }
    }
}

fn pool(resource: &mut Value, dice: &mut Dice) {
    match dice.below(10) {
        8 => put(resource, "spec/forProvider", "readConsole", json!(true)),
        9 => setup(resource, dice),
        0..=2 => pool_conditions(resource, dice),
        3 => deletion(resource, dice),
        4 => put(
            resource,
            "spec/forProvider",
            "subnetIds",
            json!(["subnet-1"]),
        ),
        5 => {
            let count = dice.below(3);
            let instances: Vec<Value> = (0..count).map(|n| instance(n, dice)).collect();
            put(resource, "status/atProvider", "instances", json!(instances));
        }
        6 => notice(resource, dice),
        _ => {
            let changed = instance(0, dice);
            if let Some(first) = first_instance(resource) {
                let field =
                    *dice.pick(&["id", "state", "instanceType", "publicIp", "capacityType"]);
                first.insert(field.to_owned(), changed[field].clone());
            }
        }
    }
}

/// The first instance that a pool reports; none if the pool reports none.
fn first_instance(pool: &mut Value) -> Option<&mut Map<String, Value>> {
    let first = pool.pointer_mut("/status/atProvider/instances/0");
    first.and_then(Value::as_object_mut)
}

/// Sets what AWS announces for the first instance.
fn notice(resource: &mut Value, dice: &mut Dice) {
    let kind = *dice.pick(&["Interruption", "Interruption", "Maintenance", "Other"]);
    let notice = json!({"kind": kind, "at": "2026-11-20T11:00:00Z"});
    if let Some(first) = first_instance(resource) {
        first.insert("notice".to_owned(), notice);
    }
}

/// Sets what the console of the first instance says.
fn setup(resource: &mut Value, dice: &mut Dice) {
    let Some(first) = first_instance(resource) else {
        return;
    };
    let state = *dice.pick(&["SettingUp", "Ready", "Failed", "Unknown", "Other"]);
    let message = *dice.pick(&[
        "",
        "install OpenCV (exit 1), see /var/log/gpu-workspace-setup.log",
        "<script>alert(1)</script>",
        "the console has not shown the end of the setup within fifteen minutes",
    ]);
    first.insert(
        "setup".to_owned(),
        json!({"state": state, "message": message}),
    );
    let keys = json!([*dice.pick(&HOST_KEYS)]);
    first.insert("consoleHostKeys".to_owned(), keys);
}

fn instance(launch: usize, dice: &mut Dice) -> Value {
    json!({
        "id": id(dice),
        "launch": launch,
        "instanceType": *dice.pick(&TYPES),
        "zone": *dice.pick(&ZONES),
        "capacityType": *dice.pick(&["Spot", "OnDemand"]),
        "imageId": "ami-00000000000c0de01",
        "state": *dice.pick(&STATES),
        "publicIp": *dice.pick(&ADDRESSES),
    })
}

/// Sets one condition, or removes all of them.
fn conditions(resource: &mut Value, dice: &mut Dice) {
    let message = dice.pick(&FAILURES).replace(
        "ID,",
        &format!("{:08x}-5c53-4b6a-9d1b-0d1b6ef0a7c5,", dice.below(1 << 31)),
    );
    condition(resource, dice, &message);
}

/// Messages of this project's own provider have no request ids.
fn pool_conditions(resource: &mut Value, dice: &mut Dice) {
    let message = *dice.pick(&[
        "spec.forProvider.instanceTypes[1]: EC2 does not offer it in us-east-1",
        "no capacity for g4dn.xlarge in us-east-1a",
        "spec.forProvider.image.id and spec.providerConfigRef",
        "",
    ]);
    condition(resource, dice, message);
}

fn condition(resource: &mut Value, dice: &mut Dice, message: &str) {
    if dice.percent(8) {
        put(resource, "status", "conditions", json!([]));
        return;
    }
    let type_ = *dice.pick(&["Ready", "Synced", "LastAsyncOperation", "Launched"]);
    let reason = *dice.pick(&[
        "Available",
        "Creating",
        "ReconcileError",
        "Quota",
        "Capacity",
    ]);
    let condition = json!({
        "type": type_,
        "status": *dice.pick(&["True", "False", "False", "Unknown"]),
        "reason": reason,
        "message": message,
        "lastTransitionTime": TIME
    });
    let status = object(resource, &["status"]);
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|c| c["type"] != type_);
        conditions.push(condition);
    }
}

fn deletion(resource: &mut Value, dice: &mut Dice) {
    if dice.percent(70) {
        put(resource, "metadata", "deletionTimestamp", json!(TIME));
    } else {
        object(resource, &["metadata"]).remove("deletionTimestamp");
    }
}

fn put(resource: &mut Value, at: &str, field: &str, value: Value) {
    let path: Vec<&str> = at.split('/').collect();
    object(resource, &path).insert(field.to_owned(), value);
}
