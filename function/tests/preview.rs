//! The preview says what happens to a workspace under another policy.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use function_gpu_workspace::kinds::KINDS;
use function_preview::snapshot::Dump;
use function_preview::{Effect, Preview, Proposal, preview};
use serde_json::{Value, json};

const COMPOSITION: &str = "gpudevworkspaces";

/// The preview of a case under its policy with a change.
fn of(name: &str, change: &[(&str, Value)]) -> Preview {
    of_request(&case::request_json(name), change)
}

/// The preview of a request under its policy with a change.
fn of_request(request: &Value, change: &[(&str, Value)]) -> Preview {
    let mut policy = request["input"].clone();
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": COMPOSITION},
        "spec": {"pipeline": [{"step": "workspace", "input": policy}]}
    });
    for (pointer, value) in change {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = policy.pointer_mut(parent).unwrap();
        parent[field] = value.clone();
    }
    let dump = json!({"kind": "List", "items": objects(request, composition)});
    let mut dump = Dump::read(&dump.to_string()).unwrap();
    let proposal = Proposal::read(&policy.to_string(), None, &mut dump).unwrap();
    preview(&proposal, &mut dump, KINDS, case::now()).unwrap()
}

/// The objects of a case as a cluster has them.
fn objects(request: &Value, composition: Value) -> Vec<Value> {
    let mut composite = request["observed"]["composite"]["resource"].clone();
    let mut objects = vec![composition];
    let mut references = Vec::new();
    let resources = request["observed"]["resources"].as_object();
    for (resource, observed) in resources.into_iter().flatten() {
        let mut object = observed["resource"].clone();
        let annotations = &mut object["metadata"]["annotations"];
        if annotations.is_null() {
            *annotations = json!({});
        }
        annotations["crossplane.io/composition-resource-name"] = json!(resource);
        references.push(json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        }));
        objects.push(object);
    }
    composite["spec"]["resourceRefs"] = json!(references);
    composite["spec"]["compositionRef"] = json!({"name": COMPOSITION});
    objects.push(composite);
    let required = request["requiredResources"].as_object();
    for items in required.into_iter().flat_map(|all| all.values()) {
        let items = items["items"].as_array().into_iter().flatten();
        objects.extend(items.map(|item| item["resource"].clone()));
    }
    objects
}

fn effect(name: &str, change: &[(&str, Value)]) -> (Effect, String) {
    let shown = of(name, change);
    let [row] = &shown.workspaces[..] else {
        panic!("{name}: {shown}");
    };
    (row.effect, row.message.clone())
}

#[test]
fn the_same_policy_changes_nothing() {
    for name in case::names() {
        let request = case::request_json(&name);
        let kind = &request["input"]["kind"];
        let has_composite =
            request["observed"]["composite"]["resource"]["spec"]["claimRef"].is_object();
        if kind != "WorkspacePolicy" || !has_composite {
            continue;
        }
        for row in of(&name, &[]).workspaces {
            assert_eq!(row.effect, Effect::Unchanged, "{name}: {}", row.message);
        }
    }
}

#[test]
fn a_type_that_is_allowed_no_more_refuses_the_claim_and_ends_nothing() {
    let narrower = [("/allowedInstanceTypes", json!(["g5.xlarge"]))];
    let (effect, message) = effect("ready", &narrower);
    assert_eq!(effect, Effect::Refused);
    assert_eq!(
        message,
        "spec.parameters.instanceType: g4dn.xlarge is not allowed; allowed are g5.xlarge"
    );
    assert!(!of("ready", &narrower).ends_a_machine());
}

#[test]
fn another_market_replaces_the_machine() {
    let on_demand = [("/defaults/capacityType", json!("OnDemand"))];
    let shown = of("ready", &on_demand);
    assert_eq!(shown.workspaces[0].effect, Effect::Replaced, "{shown}");
    assert!(shown.ends_a_machine());
}

#[test]
fn an_image_that_is_allowed_again_replaces_the_machine_that_waits_for_it_with_its_home() {
    let mut request = case::request_json("image-changed-with-a-home");
    request["input"]["allowedImages"] = json!(["default"]);
    let shown = of_request(&request, &[("/allowedImages", json!(["default", "plain"]))]);
    let [row] = &shown.workspaces[..] else {
        panic!("{shown}");
    };
    assert_eq!(row.effect, Effect::Replaced, "{shown}");
    assert_eq!(row.message, "pool boots another image");
    assert!(shown.ends_a_machine());
}

#[test]
fn another_tag_changes_resources_and_no_machine() {
    let (effect, message) = effect("ready", &[("/instance/tags/team", json!("vision"))]);
    assert_eq!(effect, Effect::Changed);
    assert_eq!(message, "pool: spec.forProvider.tags.team");
}

#[test]
fn a_shorter_lifetime_stops_what_has_run_for_longer() {
    let shorter = [(
        "/lifecycle",
        json!({"maxLifetime": {"default": "1m", "maximum": "1m"}}),
    )];
    let shown = of("lifecycle-in-use", &shorter);
    assert_eq!(shown.workspaces[0].effect, Effect::Stopped, "{shown}");
    assert!(shown.ends_a_machine());
}

#[test]
fn a_workspace_of_another_composition_is_not_in_the_preview() {
    let request = case::request_json("ready");
    let composition = json!({"kind": "Composition", "metadata": {"name": "other"}});
    let mut dump = json!({"items": objects(&request, composition)});
    dump["items"][0]["apiVersion"] = json!("apiextensions.crossplane.io/v1");
    let mut dump = Dump::read(&dump.to_string()).unwrap();
    let policy = request["input"].to_string();
    let proposal = Proposal::read(&policy, Some("other"), &mut dump).unwrap();
    let shown = preview(&proposal, &mut dump, KINDS, case::now()).unwrap();
    assert_eq!(shown.to_string(), "no workspace of this Composition");
}

#[test]
fn the_table_has_a_line_for_each_workspace_that_changes_and_a_sum() {
    let narrower = [("/allowedInstanceTypes", json!(["g5.xlarge"]))];
    let shown = of("ready", &narrower).to_string();
    let lines: Vec<_> = shown.lines().collect();
    assert!(
        lines[0].starts_with("NAMESPACE    NAME          EFFECT"),
        "{shown}"
    );
    assert!(
        lines[1].starts_with("team-vision  alice-vision  refused    on "),
        "{shown}"
    );
    assert_eq!(lines[2], "1 workspace: 1 refused");
}
