//! Namespaced composites, which have no claim. The tests turn every case of a claim's composite
//! into one of a namespaced composite.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use case::answer;

const SECRET: &str = "workspace-connection";
/// The name of the security group in EC2. It contains the composite's name.
const GROUP_NAME: &str = "/desired/resources/security-group/resource/spec/forProvider/name";
/// The labels by which the function finds attachments that Crossplane forgot.
const ATTACHMENTS: &str = "/requirements/resources/attachments/matchLabels/labels";

/// This test names every difference. In everything else, a workspace without a claim is composed
/// like one with a claim.
#[test]
fn a_workspace_without_a_claim_is_composed_as_one_with_a_claim() {
    let mut compared = 0;
    for name in case::names() {
        let legacy = case::request_json(&name);
        let Some(request) = case::namespaced(&legacy) else {
            continue;
        };
        let names =
            [&legacy, &request].map(|r| text(r, "/observed/composite/resource/metadata/name"));
        let has_group = request.pointer("/observed/resources/security-group");
        let has_group = has_group.is_some();
        let mut expected = case::golden(&answer(&case::parse(legacy.clone())));
        renamed(&mut expected, names, has_group);
        let connection = taken(&mut expected, "/desired/composite", "connectionDetails");
        let mut found = case::golden(&answer(&case::parse(request.clone())));
        let record = taken(&mut found, "/desired/resources", case::RECORD);
        let record = record.as_ref();
        let recorded = record.and_then(|record| record.pointer("/resource/spec/status"));
        let mut status = found.pointer("/desired/composite/resource/status").cloned();
        // Earlier steps of the pipeline own other fields of the status.
        let earlier = request.pointer("/desired/composite/resource/status");
        let earlier = earlier.and_then(Value::as_object).into_iter().flatten();
        for (field, _) in earlier {
            status
                .as_mut()
                .and_then(|s| s.as_object_mut()?.remove(field));
        }
        // The function works these out anew on every call.
        if let Some(status) = status.as_mut().and_then(Value::as_object_mut) {
            for derived in ["machine", "opencvVersion", "owner", "pytorchVersion"] {
                status.remove(derived);
            }
            let lifecycle = status.get_mut("lifecycle").and_then(Value::as_object_mut);
            lifecycle.and_then(|lifecycle| lifecycle.remove("extension"));
        }
        assert_eq!(
            recorded,
            status.as_ref(),
            "{name}: the record is the status"
        );
        taken(&mut found, "/requirements/resources", case::RECORD);
        if found.pointer("/requirements/resources") == Some(&json!({})) {
            taken(&mut found, "", "requirements");
        }
        let secret = taken(&mut found, "/desired/resources", SECRET);
        if found.pointer("/desired/resources") == Some(&json!({})) {
            taken(&mut found, "/desired", "resources");
        }
        // Connection details of earlier steps stay in the response. Crossplane drops them for a
        // namespaced composite.
        let earlier = taken(&mut found, "/desired/composite", "connectionDetails");
        let mut told = details(earlier.as_ref());
        told.extend(data(secret.as_ref()));
        assert_eq!(details(connection.as_ref()), told, "{name}");
        let texts = [&found, &expected].map(|of| serde_yaml::to_string(of).unwrap());
        let mut lines = texts[0].lines().zip(texts[1].lines());
        let differing = lines.find(|(found, expected)| found != expected);
        assert!(found == expected, "{name}: {differing:?}");
        compared += 1;
    }
    assert!(compared > 100, "only {compared} cases have a claim");
}

/// Renames what is named after the composite. An existing security group keeps its name, because
/// EC2 cannot change it.
fn renamed(response: &mut Value, [legacy, own]: [&str; 2], has_group: bool) {
    let rename = |label: &mut Value| {
        if label == legacy {
            *label = json!(own);
        }
    };
    if let Some(label) = response.pointer_mut(ATTACHMENTS) {
        rename(&mut label["platform.acme.io/workspace"]);
    }
    if let Some(name) = response.pointer_mut(GROUP_NAME).filter(|_| !has_group) {
        let group = name.as_str().unwrap().replace(legacy, own);
        *name = json!(group);
    }
    let resources = response.pointer_mut("/desired/resources");
    let resources = resources
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten();
    for (_, resource) in resources {
        let resource = &mut resource["resource"];
        if resource["kind"] == "VolumeAttachment" {
            rename(&mut resource["metadata"]["labels"]["platform.acme.io/workspace"]);
        }
    }
}

fn taken(response: &mut Value, at: &str, field: &str) -> Option<Value> {
    let object = response.pointer_mut(at)?.as_object_mut()?;
    object.remove(field)
}

/// The decoded connection details.
fn details(connection: Option<&Value>) -> BTreeMap<String, String> {
    decoded(connection.and_then(Value::as_object))
}

/// The decoded data of a Secret.
fn data(secret: Option<&Value>) -> BTreeMap<String, String> {
    let data = secret.and_then(|secret| secret.pointer("/resource/data"));
    decoded(data.and_then(Value::as_object))
}

fn decoded(fields: Option<&Map<String, Value>>) -> BTreeMap<String, String> {
    let decode = |(key, value): (&String, &Value)| {
        let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
        (key.clone(), String::from_utf8(bytes).unwrap())
    };
    fields.into_iter().flatten().map(decode).collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).unwrap().as_str().unwrap()
}

fn secret_of(request: &Value) -> Option<Value> {
    let response = case::golden(&answer(&case::parse(request.clone())));
    response
        .pointer(&format!("/desired/resources/{SECRET}"))
        .cloned()
}

/// When the function observes the Secret that it composed, the Secret stays unchanged and is ready.
#[test]
fn the_secret_is_written_once() {
    let mut request = case::request_json("modern-becoming-ready");
    let made = secret_of(&request).unwrap();
    assert_eq!(made["ready"], "READY_FALSE");
    let observed = json!({SECRET: {"resource": made["resource"]}});
    let status = case::status(&answer(&case::parse(request.clone())));
    let change = json!({"observed": {
        "resources": observed,
        "composite": {"resource": {"status": status}},
    }});
    case::merge(&mut request, &change);
    let kept = secret_of(&request).unwrap();
    assert_eq!(kept["resource"], made["resource"]);
    assert_eq!(kept["ready"], "READY_TRUE");
}

/// EC2 may have given the address to another customer's machine.
#[test]
fn a_machine_that_is_gone_is_in_no_secret() {
    let secret = secret_of(&case::request_json("modern-interrupted")).unwrap();
    assert_eq!(secret.pointer("/resource/data"), None);
    assert_eq!(
        secret["resource"]["metadata"]["name"],
        "alice-vision-connection"
    );
}

#[test]
fn an_address_stays_in_the_secret_while_nobody_understands_the_pool() {
    let request = case::request_json("modern-pool-unreadable");
    let secret = secret_of(&request).unwrap();
    let observed = request
        .pointer(&format!("/observed/resources/{SECRET}/resource/data"))
        .unwrap();
    assert_eq!(secret.pointer("/resource/data"), Some(observed));
}

/// The function composes into the composite's own namespace, even if the composite's spec names
/// another one.
#[test]
fn a_namespaced_workspace_reaches_into_no_other_namespace() {
    let mut request = case::request_json("modern-xr");
    let claim = json!({"namespace": "team-finance", "name": "payroll"});
    let change = json!({"observed": {"composite": {"resource": {"spec": {"claimRef": claim}}}}});
    case::merge(&mut request, &change);
    let response = answer(&case::parse(request));
    let pool = case::pool(&response).unwrap();
    assert_eq!(pool["metadata"]["namespace"], "team-vision");
    assert_eq!(
        pool["spec"]["forProvider"]["tags"]["workspace"],
        "team-vision/alice-vision"
    );
}

/// What a developer would write to get another image, another person's volume, a run without an end
/// and a month free of charge.
fn forged() -> Value {
    json!({
        "phase": "Ready",
        "image": {"id": "ami-evil", "name": "default"},
        "home": {"volumeId": "vol-0000000000000b0b0", "zone": "us-east-1a"},
        "lifecycle": {
            "startedAt": "2027-01-01T00:00:00Z",
            "limits": {"maxLifetime": "9999d"},
        },
        "cost": null,
    })
}

/// All cases as namespaced composites.
fn all() -> impl Iterator<Item = (String, Value)> {
    let names = case::names().into_iter();
    names.filter_map(|name| {
        let request = case::namespaced(&case::request_json(&name))?;
        Some((name, request))
    })
}

fn response(request: &Value) -> Value {
    case::golden(&answer(&case::parse(request.clone())))
}

/// Conditions stay, because events depend on them, and no decision does.
fn with_forged_status(request: &Value) -> Value {
    let mut request = request.clone();
    let change = json!({"observed": {"composite": {"resource": {"status": forged()}}}});
    case::merge(&mut request, &change);
    request
}

#[test]
fn a_developer_who_writes_the_status_changes_no_decision() {
    let mut compared = 0;
    for (name, request) in all() {
        let record = request.pointer("/observed/resources/workspace-record");
        if record.is_none() {
            continue;
        }
        let forged = response(&with_forged_status(&request));
        assert!(forged == response(&request), "{name}");
        compared += 1;
    }
    assert!(compared > 80, "only {compared} cases have a record");
}

#[test]
fn a_status_that_a_developer_wrote_before_the_first_call_is_not_believed() {
    let request = case::namespaced(&case::request_json("first-call")).unwrap();
    let forged = with_forged_status(&request);
    assert!(response(&forged) == response(&request));
}

/// A developer may remove the record from the list of composed resources.
#[test]
fn a_record_that_is_not_listed_is_fetched() {
    let mut compared = 0;
    for (name, mut request) in all() {
        let Some(listed) = taken(&mut request, "/observed/resources", case::RECORD) else {
            continue;
        };
        let bare = response(&request);
        let asked = bare.pointer("/requirements/resources/workspace-record");
        let by_name = asked.and_then(|asked| asked.get("matchName"));
        assert_eq!(by_name, listed.pointer("/resource/metadata/name"), "{name}");
        request["requiredResources"][case::RECORD] = json!({"items": [listed]});
        let status = |of: &Value| of.pointer("/desired/composite/resource/status").cloned();
        let fetched = status(&response(&with_forged_status(&request)));
        request["observed"]["resources"][case::RECORD] = listed;
        assert_eq!(fetched, status(&response(&request)), "{name}");
        compared += 1;
    }
    assert!(compared > 80, "only {compared} cases have a record");
}
