//! Cases: requests as YAML, beside the responses that they get.
//!
//! A request is written out, or it `extends` another case and says what to
//! `change` as a JSON merge patch (RFC 7386): `null` removes a field, a list
//! replaces the whole list.
#![allow(dead_code, reason = "every test binary uses its own part")]

pub mod compute;
pub mod own_names;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use function_gpu_workspace::kinds::{self, KINDS};
use function_runtime::kind::Kinds;
use function_sdk_rust::proto::v1::{Condition, RunFunctionRequest, RunFunctionResponse, Status};
use function_sdk_rust::resource::struct_to_json;
use function_server::answer;
use function_server::decode::call::Call;
use function_server::encode::protobuf::encode;
use function_server::encode::response::Answer;
use jiff::Timestamp;
use prost::Message;
use serde_json::{Map, Value, json};

/// Crossplane's fields of a legacy XR's spec, which a modern one has under
/// `spec.crossplane`.
const MACHINERY: [&str; 6] = [
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "compositionUpdatePolicy",
    "resourceRefs",
];

/// The composition resource name of the record of a namespaced composite.
pub const RECORD: &str = "workspace-record";

/// The label of an attachment with the composite's name.
const WORKSPACE_LABEL: &str = "/resource/metadata/labels/platform.acme.io~1workspace";

/// When every case is decided.
pub fn now() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

/// The folder of all cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// The names of all cases, sorted.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A case's request as JSON.
pub fn request_json(name: &str) -> Value {
    /// Each is read once: most tests go through all of them.
    static READ: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    if let Some(known) = READ.lock().unwrap().get(name) {
        return known.clone();
    }
    let request = read(name);
    READ.lock()
        .unwrap()
        .insert(name.to_owned(), request.clone());
    request
}

fn read(name: &str) -> Value {
    let path = folder().join(name).join("request.yaml");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let written: Value =
        serde_yaml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    match written.get("extends").and_then(Value::as_str) {
        None => written,
        Some(base) => {
            let mut request = request_json(base);
            merge(&mut request, &written["change"]);
            request
        }
    }
}

/// Whether a case is one of a workspace, and not of a user or a flavor.
pub fn is_workspace(name: &str) -> bool {
    let request = request_json(name);
    let composite = &request["observed"]["composite"]["resource"];
    let kind = composite["kind"].as_str().unwrap_or_default();
    ["GpuDevWorkspace", "GpuDevWorkspaceClaim"].contains(&kind)
}

/// Whether a case is one of a workspace in the cluster: what is there decides, before the
/// claim does.
pub fn is_in_cluster(name: &str) -> bool {
    let request = request_json(name);
    let resources = request.pointer("/observed/resources");
    let names = resources.and_then(Value::as_object).into_iter().flatten();
    let mut names = names.map(|(name, _)| name.as_str());
    let placement = "/observed/composite/resource/spec/parameters/placement";
    let placement = request.pointer(placement) == Some(&json!("Cluster"));
    let of_cluster = |name: &str| name.starts_with("cluster-");
    let of_placement = |name: &str| !["workspace-connection", RECORD].contains(&name);
    let own = names.find(|name| own_names::is_own(name) && of_placement(name));
    is_workspace(name) && own.map_or(placement, of_cluster)
}

/// Whether a case is one of a workspace on EC2, wherever its claim wants it.
pub fn is_on_ec2(name: &str) -> bool {
    is_workspace(name) && !is_in_cluster(name)
}

/// Whether the pods of the desired status wait in a queue of Kueue.
pub fn has_queue(response: &RunFunctionResponse) -> bool {
    let composite = response.desired.as_ref().and_then(|d| d.composite.as_ref());
    let status = composite.and_then(|composite| composite.resource.as_ref());
    let status = status.map(struct_to_json).unwrap_or_default();
    status.pointer("/status/pods/queue").is_some()
}

/// A case's request.
pub fn request(name: &str) -> RunFunctionRequest {
    parse(request_json(name))
}

/// A request of a claim's composite as that of a namespaced one, which is the claim
/// itself; none where there is no claim.
pub fn namespaced(request: &Value) -> Option<Value> {
    let mut request = request.clone();
    let composite = request.pointer_mut("/observed/composite/resource")?;
    let claim = composite.pointer("/spec/claimRef")?;
    let name = claim["name"].as_str()?.to_owned();
    let metadata = json!({
        "name": name,
        "namespace": claim["namespace"].as_str()?,
        "labels": {
            "crossplane.io/composite": name,
            "crossplane.io/claim-name": null,
            "crossplane.io/claim-namespace": null,
        },
    });
    let spec = composite.get_mut("spec")?.as_object_mut()?;
    let own = MACHINERY
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), spec.remove(field)?)));
    let own: Map<String, Value> = own.collect();
    for legacy in ["claimRef", "writeConnectionSecretToRef"] {
        spec.remove(legacy);
    }
    spec.insert("crossplane".to_owned(), Value::Object(own));
    let change = json!({
        "kind": "GpuDevWorkspaceClaim",
        "metadata": metadata,
        "status": {"claimConditionTypes": null, "connectionDetails": null},
    });
    let status = composite.get("status").cloned();
    merge(composite, &change);
    if let Some(fields) = composite.as_object_mut().filter(|_| status.is_none()) {
        fields.remove("status");
    }
    // What the function remembers is in the record. Nothing is decided from the status.
    if let Some(status) = status {
        let record = record_of(composite, &status);
        let change = json!({"observed": {"resources": {RECORD: {"resource": record}}}});
        merge(&mut request, &change);
    }
    // Its account is by its own name.
    let user = "/requiredResources/dev-user/items/0/resource/status/budget/grants";
    let grants = request.pointer_mut(user).and_then(Value::as_object_mut);
    if let Some(grants) = grants {
        let renamed = std::mem::take(grants).into_iter().map(|(key, grant)| {
            let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
            (format!("{namespace}/{name}"), grant)
        });
        *grants = renamed.collect();
    }
    let resources = request.pointer_mut("/observed/resources");
    let resources = resources.and_then(Value::as_object_mut);
    for (_, resource) in resources.into_iter().flatten() {
        if let Some(label) = resource.pointer_mut(WORKSPACE_LABEL) {
            *label = json!(name);
        }
    }
    Some(request)
}

/// The record of a namespaced composite with this status.
fn record_of(composite: &Value, status: &Value) -> Value {
    let metadata = &composite["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let named = &composite["spec"]["parameters"]["owner"];
    let owner = status.get("owner").unwrap_or(named);
    json!({
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "WorkspaceRecord",
        "metadata": {
            "name": format!("gpuws-{name}-record"),
            "namespace": metadata["namespace"],
        },
        "spec": {
            "workspace": {"name": name, "uid": metadata["uid"]},
            "owner": owner.as_str().unwrap_or_default(),
            "status": status,
        },
    })
}

/// A case's request with a further merge patch.
pub fn changed(name: &str, change: &Value) -> RunFunctionRequest {
    let mut request = request_json(name);
    merge(&mut request, change);
    parse(request)
}

/// A case's next call, when nothing happened but that its response was applied: status
/// and conditions are those of the response, and no others.
pub fn after(name: &str, response: &RunFunctionResponse) -> RunFunctionRequest {
    let mut request = request_json(name);
    let mut status = status(response);
    status["conditions"] = conditions(response);
    request["observed"]["composite"]["resource"]["status"] = status;
    parse(request)
}

/// The conditions of a response, as Crossplane writes them to the status.
pub fn conditions(response: &RunFunctionResponse) -> Value {
    let conditions = response.conditions.iter();
    conditions
        .map(|c| {
            let holds = if c.status == Status::ConditionTrue as i32 {
                "True"
            } else {
                "False"
            };
            json!({
                "type": c.r#type, "status": holds, "reason": c.reason, "message": c.message()
            })
        })
        .collect()
}

/// The desired composed resources of a response, by composition resource name.
pub fn resources(response: &RunFunctionResponse) -> BTreeMap<String, Value> {
    let desired = response.desired.as_ref().unwrap();
    let composed = desired.resources.iter();
    composed
        .map(|(key, r)| (key.clone(), struct_to_json(r.resource.as_ref().unwrap())))
        .collect()
}

/// A request from its JSON form.
pub fn parse(request: Value) -> RunFunctionRequest {
    serde_json::from_value(request).unwrap()
}

/// What the function answers.
pub fn answer(request: &RunFunctionRequest) -> RunFunctionResponse {
    let encoded = request.encode_to_vec();
    let call = Call::read(&encoded, KINDS).unwrap();
    received(&answer_of(request, call))
}

/// What the function answers to a request, of which `call` is the read form.
pub fn answer_of(request: &RunFunctionRequest, call: Call<'_>) -> Answer {
    answer::answer(kinds_for(request), call, now(), |_, _| {})
}

/// The kinds of the function that gets a request: it has the flag `--limits` if Crossplane fetched
/// the platform's limits for it.
fn kinds_for(request: &RunFunctionRequest) -> Kinds {
    if request.required_resources.contains_key("limits") {
        limited()
    } else {
        KINDS
    }
}

/// The kinds of a function with the flag `--limits`.
pub fn limited() -> Kinds {
    static LIMITED: LazyLock<Kinds> = LazyLock::new(|| kinds::limited(LIMITS.to_owned()));
    *LIMITED
}

/// The name of the EnvironmentConfig with the platform's limits.
pub const LIMITS: &str = "gpu-workspace-limits";

/// An answer as Crossplane receives it.
pub fn received(answer: &Answer) -> RunFunctionResponse {
    RunFunctionResponse::decode(encode(answer).as_ref()).unwrap()
}

/// A response as JSON with sorted keys, its numbers as Crossplane reads them.
pub fn response_json(response: &RunFunctionResponse) -> Value {
    sorted(serde_json::to_value(response).unwrap())
}

/// A response as it is written down: programs and scripts by their names only, since they
/// are files of this repository. `tests/behaviour.rs` holds the scripts' text.
pub fn golden(response: &RunFunctionResponse) -> Value {
    let mut json = programs_by_name(response);
    let resources = json.pointer_mut("/desired/resources");
    let resources = resources.and_then(Value::as_object_mut);
    for (_, resource) in resources.into_iter().flatten() {
        let user_data = resource.pointer_mut("/resource/spec/forProvider/userData");
        if let Some(Value::String(user_data)) = user_data {
            for (name, text) in &*SCRIPTS {
                *user_data = user_data.replace(text, &format!("    ({name})\n"));
            }
        }
    }
    json
}

/// A response with the pods' programs by their names only.
pub fn programs_by_name(response: &RunFunctionResponse) -> Value {
    let mut json = response_json(response);
    let programs = json.pointer_mut("/desired/resources/cluster-files/resource/data");
    let programs = programs.and_then(Value::as_object_mut);
    for (name, text) in programs.into_iter().flatten() {
        // What is held stays as it is observed, whatever that is.
        let file = source("cluster/programs").join(name.as_str());
        let is_ours = fs::read_to_string(file).is_ok_and(|file| *text == file);
        if is_ours {
            *text = format!("(program {name})").into();
        }
    }
    json
}

/// The scripts in user data, as they are indented there.
static SCRIPTS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let read = |name: &str| fs::read_to_string(source("ec2/src/user_data").join(name)).unwrap();
    let before = "uid=$(id -u developer)\n";
    let home = read("home.sh");
    let with_host_keys = home.replace(before, &format!("{}{before}", read("host_keys.sh")));
    let mut scripts = vec![("home.sh and host_keys.sh".to_owned(), with_host_keys)];
    for name in [
        "agent.sh",
        "home.sh",
        "keys.py",
        "setup.sh",
        "setup_v1.sh",
        "setup_v3.sh",
    ] {
        scripts.push((name.to_owned(), read(name)));
    }
    for (_, text) in &mut scripts {
        let lines = text.lines().map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("    {line}\n"),
        });
        *text = lines.collect();
    }
    scripts
});

fn source(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// The desired pool.
pub fn pool(response: &RunFunctionResponse) -> Option<Value> {
    let resource = response.desired.as_ref()?.resources.get("pool")?;
    resource.resource.as_ref().map(struct_to_json)
}

/// The desired status of the XR.
pub fn status(response: &RunFunctionResponse) -> Value {
    let composite = response
        .desired
        .as_ref()
        .unwrap()
        .composite
        .as_ref()
        .unwrap();
    struct_to_json(composite.resource.as_ref().unwrap())["status"].clone()
}

/// A condition of the response.
pub fn condition<'a>(response: &'a RunFunctionResponse, type_: &str) -> &'a Condition {
    response
        .conditions
        .iter()
        .find(|c| c.r#type == type_)
        .unwrap()
}

/// The readiness of the pool and of the XR.
pub fn readiness(response: &RunFunctionResponse) -> (i32, i32) {
    let desired = response.desired.as_ref().unwrap();
    (
        desired.resources["pool"].ready,
        desired.composite.as_ref().unwrap().ready,
    )
}

/// A case with something changed in its observed pool.
pub fn with_pool(name: &str, resource: &Value) -> RunFunctionResponse {
    let change = json!({"observed": {"resources": {"pool": {"resource": resource}}}});
    answer(&changed(name, &change))
}

/// A case with its pool's conditions replaced.
pub fn with_conditions(name: &str, conditions: &[(&str, &str, &str, &str)]) -> RunFunctionResponse {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(type_, status, reason, message)| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-11-20T10:00:05Z"
            })
        })
        .collect();
    with_pool(name, &json!({"status": {"conditions": conditions}}))
}

/// Changes JSON by a merge patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let target = target.as_object_mut().unwrap();
    for (key, change) in patch {
        if change.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Sorts the keys, and writes whole numbers without a fraction, as Go's
/// `structpb` hands them to the API server.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Number(number) => match number.as_f64() {
            #[allow(clippy::cast_possible_truncation, reason = "the fraction is zero")]
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => (float as i64).into(),
            _ => Value::Number(number),
        },
        other => other,
    }
}
