//! Users and their namespaces. The function protects a user whose deletion would delete homes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use api::cost::BudgetStatus;
use function_sdk_rust::proto::v1::{Severity, Status};
use function_sdk_rust::resource::struct_to_json;
use serde::Deserialize;
use serde_json::{Value, json};

use case::answer;

fn rendered(name: &str, change: &Value, key: &str) -> Option<Value> {
    let response = answer(&case::changed(name, change));
    let resource = response.desired?.resources.remove(key)?;
    resource.resource.as_ref().map(struct_to_json)
}

fn users() -> impl Iterator<Item = String> {
    let names = case::names().into_iter();
    names.filter(|name| {
        name.starts_with("user-") && case::request_json(name)["input"]["kind"] == "DevUserPolicy"
    })
}

fn spec(change: &Value) -> Value {
    json!({"observed": {"composite": {"resource": {"spec": change}}}})
}

/// A mistake of the platform team costs no user their namespace, the bounds in it or their budget.
#[test]
fn a_refused_user_keeps_everything() {
    let mistakes = [
        json!({"input": null}),
        json!({"input": {"quotas": {}}}),
        spec(&json!({"publicKeys": ["no key"]})),
    ];
    let mut checked = 0;
    for name in users() {
        let observed = &case::request_json(&name)["observed"];
        let budget = &observed["composite"]["resource"]["status"]["budget"];
        for mistake in &mistakes {
            let response = answer(&case::changed(&name, mistake));
            let config = case::condition(&response, "ConfigResolved");
            assert_eq!(config.status, Status::ConditionFalse as i32, "{name}");
            let results = response.results.iter();
            let warnings = results.filter(|result| result.severity() == Severity::Warning);
            assert_eq!(warnings.count(), response.results.len(), "{name} {mistake}");
            let kept = &case::status(&response)["budget"];
            assert_eq!(read(kept), read(budget), "{name} {mistake}");
            let desired = case::resources(&response);
            for (key, object) in observed["resources"].as_object().into_iter().flatten() {
                let object = &object["resource"];
                let kept = &desired[key];
                // The protection names the homes that are there now.
                let is_protection = key == "user-protection";
                assert!(
                    is_protection || kept["spec"] == object["spec"],
                    "{name} {key}"
                );
                for (label, value) in labels(object) {
                    let is_crossplanes = label.starts_with("crossplane.io/");
                    assert!(is_crossplanes || kept["metadata"]["labels"][label] == *value);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

fn read(budget: &Value) -> Option<BudgetStatus> {
    let is_there = !budget.is_null();
    is_there.then(|| BudgetStatus::deserialize(budget).unwrap())
}

fn labels(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let labels = object.pointer("/metadata/labels");
    labels.and_then(Value::as_object).into_iter().flatten()
}

/// Crossplane refuses to delete a user with homes, also while the function cannot read the policy.
#[test]
fn a_refused_user_with_a_home_cannot_be_deleted() {
    let refused = json!({
        "input": null,
        "observed": {"resources": {"user-protection": null}},
    });
    let protection = rendered("user-with-homes", &refused, "user-protection").unwrap();
    let reason = protection["spec"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("the homes (PersistentVolumeClaims) "),
        "{reason}"
    );
}

/// The namespace contains everything that the user has.
#[test]
fn no_request_whatsoever_drops_or_renames_a_namespace() {
    let changes = [
        json!({}),
        json!({"requiredResources": null}),
        json!({"input": {"namespacePrefix": "team-"}}),
        json!({"input": {"home": {"onDelete": "Delete"}}}),
        json!({"observed": {"composite": {"resource": {"spec": null, "status": null}}}}),
        json!({"input": null}),
        json!({"input": {"quotas": {}}}),
        spec(&json!({"budget": {"monthlyUsd": -1}})),
    ];
    let mut checked = 0;
    for name in users() {
        let request = case::request_json(&name);
        let observed = "/observed/resources/user-namespace/resource/metadata/name";
        let Some(namespace) = request.pointer(observed) else {
            continue;
        };
        for change in &changes {
            let desired = rendered(&name, change, "user-namespace").unwrap();
            assert_eq!(&desired["metadata"]["name"], namespace, "{name} {change}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn a_user_with_a_home_cannot_be_deleted() {
    let protection = |change: &Value| rendered("user-with-homes", change, "user-protection");
    let none = json!({"items": []});
    assert!(protection(&json!({})).is_some());
    let unknown = json!({"requiredResources": {"homes": null}});
    assert!(protection(&unknown).is_some());
    let empty = json!({"requiredResources": {"homes": none}});
    assert_eq!(protection(&empty), None);
    let agreed = json!({"input": {"home": {"onDelete": "Delete"}}});
    assert_eq!(protection(&agreed), None);
}

/// A person who tries the deletion sees the reason, and Crossplane writes the reason at every
/// change.
#[test]
fn what_is_protected_is_named_in_one_order() {
    let request = case::request_json("user-with-homes");
    let mut other = request.clone();
    let items = other["requiredResources"]["homes"]["items"].as_array_mut();
    items.unwrap().reverse();
    assert_eq!(answer(&case::parse(other)), answer(&case::parse(request)));
}
