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

/// The composition resource names of bindings that give somebody permissions.
const BINDINGS: [&str; 2] = ["user-owner-role-binding", "user-bastion-role-binding"];

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
            let is_suspended = case::request_json(&name)
                .pointer("/observed/composite/resource/spec/suspended")
                .is_some();
            for (key, object) in observed["resources"].as_object().into_iter().flatten() {
                let object = &object["resource"];
                if is_suspended && BINDINGS.contains(&key.as_str()) {
                    assert_eq!(desired.get(key), None, "{name} {mistake}");
                    continue;
                }
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

fn by_bastion() -> Value {
    json!({"input": {"access": "Bastion"}})
}

/// The names of the bindings that are desired.
fn bindings(name: &str, change: &Value) -> Vec<String> {
    let desired = case::resources(&answer(&case::changed(name, change)));
    let bindings = desired
        .into_iter()
        .filter(|(_, object)| object["kind"] == "RoleBinding");
    bindings.map(|(key, _)| key).collect()
}

/// With `access: Bastion`, a person has no permission in the cluster. The bastion has them for the
/// person, by an account without a token.
#[test]
fn a_user_of_the_bastion_has_no_permission_of_their_own() {
    let observed = "user-ready";
    assert_eq!(bindings(observed, &json!({})), [BINDINGS[0]]);
    let direct = json!({"input": {"access": "Direct"}});
    assert_eq!(
        case::resources(&answer(&case::changed(observed, &direct))),
        case::resources(&answer(&case::request(observed)))
    );
    assert_eq!(bindings(observed, &by_bastion()), [BINDINGS[1]]);
    let desired = case::resources(&answer(&case::changed(observed, &by_bastion())));
    let account = &desired["user-owner-service-account"];
    assert_eq!(
        account,
        &json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "automountServiceAccountToken": false,
            "metadata": {"name": "gpu-workspaces.owner", "namespace": "dev-dave"},
        })
    );
    let binding = &desired[BINDINGS[1]];
    assert_ne!(
        binding["metadata"]["name"], "owner",
        "two bindings, two names"
    );
    assert_eq!(
        binding["roleRef"]["name"],
        "gpu-workspaces-owner-by-bastion"
    );
    assert_eq!(
        binding["subjects"],
        json!([{
            "kind": "ServiceAccount", "name": "gpu-workspaces.owner", "namespace": "dev-dave"
        }])
    );
    let other = json!({"input": {"access": "Bastion", "bastionRole": "looks-only"}});
    let binding = rendered(observed, &other, BINDINGS[1]).unwrap();
    assert_eq!(binding["roleRef"]["name"], "looks-only");
}

/// A missing answer about the homes keeps what is observed, but no permission that the policy took.
#[test]
fn a_permission_that_the_policy_took_is_not_kept_while_the_homes_are_unknown() {
    let unknown = json!({"requiredResources": {"homes": null}, "input": {"access": "Bastion"}});
    assert_eq!(bindings("user-ready", &unknown), [BINDINGS[1]]);
}

/// A person who left has no permission, whatever else is wrong with the `DevUser` or its policy.
#[test]
fn a_suspended_user_has_no_permission_whatever_else_is_wrong() {
    let suspended = spec(&json!({"suspended": true}));
    let changes = [
        json!({}),
        by_bastion(),
        json!({"requiredResources": {"homes": null}}),
        json!({"input": null}),
        json!({"input": {"quotas": {}}}),
        spec(&json!({"publicKeys": ["no key"]})),
        spec(&json!({"subjects": [{"kind": "Group", "name": "system:authenticated"}]})),
    ];
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "owner-by-bastion", "namespace": "dev-dave"},
    });
    let observed = json!({"observed": {"resources": {(BINDINGS[1]): {"resource": binding}}}});
    let mut checked = 0;
    for name in users() {
        for change in &changes {
            let mut request = case::request_json(&name);
            if request["observed"]["resources"].is_object() {
                case::merge(&mut request, &observed);
            }
            case::merge(&mut request, change);
            case::merge(&mut request, &suspended);
            let response = answer(&case::parse(request));
            let desired = case::resources(&response);
            let kept = BINDINGS.iter().find(|name| desired.contains_key(**name));
            assert_eq!(kept, None, "{name} {change}");
            assert_eq!(
                case::status(&response)["suspended"],
                true,
                "{name} {change}"
            );
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn a_suspended_user_says_so_and_stays_ready() {
    let status = |change: &Value| case::status(&answer(&case::changed("user-ready", change)));
    assert_eq!(status(&json!({})).get("suspended"), None);
    assert_eq!(status(&json!({})).get("message"), None);
    let suspended = status(&spec(&json!({"suspended": true})));
    assert_eq!(suspended["suspended"], true);
    assert_eq!(
        suspended["message"],
        "suspended by spec.suspended: no permission and no key of this person counts"
    );
    let back = status(&spec(&json!({"suspended": false})));
    assert_eq!(back.get("suspended"), None);
}
