//! A suspended owner: no key of theirs opens anything, nothing starts for them, and what runs goes
//! on.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;

use function_sdk_rust::proto::v1::Status;
use serde_json::{Value, json};

use case::{answer, merge};

/// What the owner reads.
const WHY: &str = "DevUser alice is suspended: nothing starts for this owner, and their keys are \
                   removed; only the platform team may set spec.suspended of that DevUser to false";
/// The versions of the behaviour that a running workspace may have.
const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// The request of a case whose policy takes keys from the owner's `DevUser`.
fn request(name: &str, version: &str, suspended: bool) -> Value {
    let mut request = case::request_json(name);
    let owner = request.pointer("/observed/composite/resource/spec/parameters/owner");
    let owner = owner.and_then(Value::as_str).unwrap_or("alice").to_owned();
    let known = request.pointer("/requiredResources/dev-user/items/0/resource");
    let mut user = known.cloned().unwrap_or_else(|| json!({
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "DevUser",
        "metadata": {"name": owner, "uid": "7c1e0f9a-1111-4222-8333-944455566677"},
        "spec": {"publicKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIUserUserUserUser laptop"]},
    }));
    if suspended {
        merge(&mut user, &json!({"spec": {"suspended": true}}));
    }
    let cluster = request.pointer("/input/cluster").is_none();
    let cluster = cluster.then(|| json!({"defaultFlavor": "cpu-small"}));
    let mut change = json!({
        "input": {"behaviourVersion": version, "cluster": {"devUsers": true}},
        "requiredResources": {"dev-user": {"items": [{"resource": user}]}},
    });
    if let Some(cluster) = cluster {
        merge(&mut change["input"]["cluster"], &cluster);
    }
    merge(&mut request, &change);
    request
}

fn resources(request: Value) -> BTreeMap<String, Value> {
    case::resources(&answer(&case::parse(request)))
}

fn authorized_keys(resources: &BTreeMap<String, Value>) -> &Value {
    &resources["cluster-authorized-keys"]["data"]["authorized_keys"]
}

/// The claim and the catalogue have keys of the same person, and a certificate names the person.
#[test]
fn no_key_of_a_suspended_owner_opens_their_pods() {
    let authority = json!({"input": {"ssh": {"userAuthorities": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAuthorityAuthorityAuthorityAuthorityAuthori"]}}});
    let own = json!({"observed": {"composite": {"resource": {"spec": {"parameters": {
        "ssh": {"publicKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOwn own"]}
    }}}}}});
    for version in VERSIONS {
        for change in [&json!({}), &authority, &own] {
            let mut before = request("cluster-ready", version, false);
            merge(&mut before, change);
            assert_ne!(authorized_keys(&resources(before)), "", "{version}");
            let mut after = request("cluster-ready", version, true);
            merge(&mut after, change);
            let after = resources(after);
            assert_eq!(authorized_keys(&after), "", "{version}");
            assert_eq!(after["cluster-stateful-set"]["spec"]["replicas"], 1);
        }
    }
}

/// A claim that is refused keeps what is observed. That must not keep the keys.
#[test]
fn a_claim_that_is_refused_keeps_no_key_of_a_suspended_owner() {
    let wrong = json!({"observed": {"composite": {"resource": {"spec": {"parameters": {
        "ssh": {"publicKeys": ["no key"]}
    }}}}}});
    let observed = json!({"observed": {"resources": {"cluster-authorized-keys": {"resource": {
        "data": {"authorized_keys": "ssh-ed25519 AAAA alice@laptop\n"}
    }}}}});
    let mut request = request("cluster-ready", "v3", true);
    merge(&mut request, &observed);
    merge(&mut request, &wrong);
    assert_eq!(authorized_keys(&resources(request)), "");

    let mut request = self::request("ready", "v3", true);
    let observed = json!({"observed": {"resources": {"pool": {"resource": {"spec": {
        "forProvider": {"authorizedKeys": ["ssh-ed25519 AAAA"]}
    }}}}}});
    merge(&mut request, &observed);
    merge(&mut request, &wrong);
    let keys = &resources(request)["pool"]["spec"]["forProvider"]["authorizedKeys"];
    assert_eq!(keys, &json!([]));
}

/// The keys of a machine are in its tags, which sshd reads at each login. A machine of an earlier
/// version has them in its user data, which it read at its first boot.
#[test]
fn a_suspension_takes_the_keys_of_a_machine_and_changes_nothing_else() {
    let mut checked = 0;
    for name in case::names().iter().filter(|name| case::is_on_ec2(name)) {
        for version in VERSIONS {
            let observed = case::request_json(name)["observed"]["resources"].clone();
            let before = resources(request(name, version, false));
            let after = resources(request(name, version, true));
            for (key, machine) in after.iter().filter(|(key, _)| is_machine(key)) {
                let said = format!("{name} {version} {key}");
                let was = &observed[key]["resource"];
                assert!(was.is_object(), "{said} would start");
                let is = without_keys(machine);
                let goes_on = before.get(key).map(without_keys);
                let mut was = without_keys(was);
                // Networks beside the bastion's are closed, whether the owner is suspended or not.
                if has_only_bastion(name) {
                    was["ssh"] = goes_on.as_ref().map_or(Value::Null, |on| on["ssh"].clone());
                }
                assert!(is == was || Some(&is) == goes_on.as_ref(), "{said}: {is}");
                let parameters = &machine["spec"]["forProvider"];
                assert!(!parameters["tags"].to_string().contains("authorized-key"));
                let keys = &parameters["authorizedKeys"];
                assert!(keys.is_null() || *keys == json!([]), "{said}: {keys}");
                let end = |machine: &Value| machine["spec"]["forProvider"]["endsAt"].clone();
                let ends = before.get(key).is_none_or(|b| end(b) == end(machine));
                assert!(ends, "{said} ends at another time");
                checked += 1;
            }
            let gone: Vec<_> = before
                .keys()
                .filter(|key| is_machine(key) && observed[*key].is_object())
                .filter(|key| !after.contains_key(*key))
                .collect();
            assert!(gone.is_empty(), "{name} {version}: {gone:?} would end");
        }
    }
    assert!(checked > 100, "{checked}");
}

fn has_only_bastion(name: &str) -> bool {
    case::request_json(name).pointer("/input/bastion/only") == Some(&json!(true))
}

fn is_machine(key: &str) -> bool {
    key == "pool" || key.starts_with("pool-") || key.starts_with("instance-")
}

/// What a machine is made of, without keys and without the end of its run.
fn without_keys(machine: &Value) -> Value {
    let mut made = machine["spec"]["forProvider"].clone();
    if let Some(fields) = made.as_object_mut() {
        fields.remove("authorizedKeys");
        fields.remove("endsAt");
    }
    if let Some(tags) = made.get_mut("tags").and_then(Value::as_object_mut) {
        tags.retain(|tag, _| !tag.contains("authorized-key"));
    }
    made
}

/// The pods of a suspended owner run on, in every state in which the workspace is on.
#[test]
fn the_pods_of_a_suspended_owner_run_on() {
    let mut checked = 0;
    for name in case::names()
        .into_iter()
        .filter(|name| case::is_in_cluster(name))
    {
        let observed = case::request_json(&name)["observed"]["resources"].clone();
        let set =
            |resources: &BTreeMap<String, Value>| resources.get("cluster-stateful-set").cloned();
        let Some(replicas) =
            observed["cluster-stateful-set"]["resource"]["spec"]["replicas"].as_i64()
        else {
            continue;
        };
        if replicas == 0 {
            continue;
        }
        for version in VERSIONS {
            let before = set(&resources(request(&name, version, false)));
            let after = set(&resources(request(&name, version, true)));
            assert_eq!(after, before, "{name} {version}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn nothing_starts_for_a_suspended_owner() {
    // The bound on access has nothing to do with it.
    let starts_anyway = json!({"input": {"requireAccess": false}});
    for version in VERSIONS {
        for name in [
            "cluster-new",
            "cluster-starts-again",
            "new-workspace",
            "on-demand-new",
            "lifecycle-resumed",
        ] {
            let mut request = request(name, version, true);
            merge(&mut request, &starts_anyway);
            let response = answer(&case::parse(request));
            let made = case::resources(&response);
            for (key, object) in &made {
                assert_ne!(object["kind"], "Instance", "{name} {version}");
                let replicas = object["spec"]["replicas"].as_i64().unwrap_or_default();
                assert_eq!(replicas, 0, "{name} {version} {key}");
                let size = &object["spec"]["forProvider"]["size"]["maximum"];
                assert!(size.is_null() || *size == 0, "{name} {version} {key}");
            }
            let status = case::status(&response);
            assert_eq!(status["phase"], "Failed", "{name} {version}");
            assert_eq!(status["message"], WHY, "{name} {version}");
            let access = response
                .conditions
                .iter()
                .find(|c| c.r#type == "AccessReady");
            match access {
                Some(access) => {
                    assert_eq!(access.status, Status::ConditionFalse as i32);
                    assert_eq!(
                        (access.reason.as_str(), access.message()),
                        ("OwnerSuspended", WHY)
                    );
                }
                None => assert_ne!(version, "v3", "{name}"),
            }
        }
    }
}

/// A workspace whose owner has a budget knows the owner's `DevUser`, wherever keys come from.
#[test]
fn nothing_starts_for_a_suspended_owner_with_a_budget() {
    let mut request = case::request_json("budget-granted");
    let suspended = json!({"spec": {"suspended": true}});
    let user = request.pointer_mut("/requiredResources/dev-user/items/0/resource");
    merge(user.unwrap(), &suspended);
    request["observed"]["resources"] = json!({});
    let status = case::status(&answer(&case::parse(request)));
    assert_eq!(status["message"], WHY);
}

#[test]
fn a_workspace_starts_once_its_owner_is_no_longer_suspended() {
    for version in VERSIONS {
        let response = answer(&case::parse(request("new-workspace", version, true)));
        let mut request = request("new-workspace", version, false);
        let mut status = case::status(&response);
        status["conditions"] = case::conditions(&response);
        request["observed"]["composite"]["resource"]["status"] = status;
        let response = answer(&case::parse(request));
        assert!(case::pool(&response).is_some(), "{version}");
        let access = response
            .conditions
            .iter()
            .find(|c| c.r#type == "AccessReady");
        let reason = access.map(|access| access.reason.as_str());
        assert_eq!(
            reason,
            (version == "v3").then_some("Reachable"),
            "{version}"
        );
    }
}
