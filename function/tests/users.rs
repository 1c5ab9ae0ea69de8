//! Users and their namespaces. The function protects a user whose deletion would delete homes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use function_sdk_rust::resource::struct_to_json;
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

/// The namespace contains everything that the user has.
#[test]
fn no_request_whatsoever_drops_or_renames_a_namespace() {
    let changes = [
        json!({}),
        json!({"requiredResources": null}),
        json!({"input": {"namespacePrefix": "team-"}}),
        json!({"input": {"home": {"onDelete": "Delete"}}}),
        json!({"observed": {"composite": {"resource": {"spec": null, "status": null}}}}),
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
