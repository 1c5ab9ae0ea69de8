//! No error of claim, policy or catalogue switches off a limit.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use case::{answer, resources};

/// Changes that make a request wrong, by name, as merge patches.
fn errors() -> Vec<(&'static str, Value)> {
    let claim = |parameters: Value| json!({"observed": {"composite": {"resource": {"spec": {"parameters": parameters}}}}});
    vec![
        ("no error", json!({})),
        ("an invalid region", claim(json!({"region": "mars"}))),
        ("an invalid owner", claim(json!({"owner": "-"}))),
        (
            "a network",
            claim(json!({"ssh": {"allowedCidrs": ["300.0.0.0/24"]}})),
        ),
        (
            "the whole internet",
            claim(json!({"ssh": {"allowedCidrs": ["0.0.0.0/0"]}})),
        ),
        (
            "a lifetime",
            claim(json!({"lifecycle": {"maxLifetime": "9999d"}})),
        ),
        (
            "no duration",
            claim(json!({"lifecycle": {"maxLifetime": {"h": 1}}})),
        ),
        ("parameters of another type", claim(json!([1]))),
        ("no policy", json!({"input": null})),
        ("a misspelt policy", json!({"input": {"lifetime": "1h"}})),
        (
            "no catalogue",
            json!({"requiredResources": {"catalogue": {"items": []}}}),
        ),
        ("nothing fetched", json!({"requiredResources": null})),
    ]
}

/// A case whose run of one hour began a month ago, with an error.
fn overdue(name: &str, error: &Value) -> Value {
    let mut request = case::request_json(name);
    let limits = json!({"maxLifetime": "1h"});
    let bounds = json!({"default": "1h", "maximum": "1h"});
    let lifecycle = json!({"startedAt": "2026-10-20T12:00:00Z", "limits": limits});
    case::merge(
        &mut request,
        &json!({
            "input": {"lifecycle": {"maxLifetime": bounds, "maxExtension": null}},
            "observed": {"composite": {"resource": {"status": {"lifecycle": null}}}},
        }),
    );
    case::merge(
        &mut request,
        &json!({"observed": {"composite": {"resource": {"status": {"lifecycle": lifecycle}}}}}),
    );
    case::merge(&mut request, error);
    request
}

fn observed(request: &Value) -> Map<String, Value> {
    let resources = request.pointer("/observed/resources");
    let resources = resources.and_then(Value::as_object).cloned();
    resources.unwrap_or_default()
}

/// Why a desired resource keeps a machine or a pod running; none if it keeps none.
fn runs(name: &str, observed: &Value, all: &BTreeMap<String, Value>) -> Option<String> {
    let desired = all.get(name);
    if name == "pool" || name.starts_with("pool-") {
        let size = desired?.pointer("/spec/forProvider/size/maximum");
        return (size != Some(&json!(0))).then(|| format!("{name} has the size {size:?}"));
    }
    if name == "cluster-stateful-set" {
        let replicas = desired?.pointer("/spec/replicas");
        return (replicas != Some(&json!(0))).then(|| format!("{replicas:?} pods"));
    }
    if name.starts_with("instance-") {
        let id = observed
            .pointer("/resource/status/atProvider/id")?
            .as_str()?;
        let conditions = observed
            .pointer("/resource/status/conditions")?
            .as_array()?;
        let is_ready = |c: &Value| c["type"] == "Ready" && c["status"] != "False";
        if !conditions.iter().any(is_ready) {
            return None;
        }
        let stops = |state: &Value| {
            state.pointer("/spec/forProvider/instanceId") == Some(&json!(id))
                && state.pointer("/spec/forProvider/state") == Some(&json!("stopped"))
        };
        let mut states = all.iter().filter(|(name, _)| name.starts_with("power-"));
        return (!states.any(|(_, state)| stops(state))).then(|| format!("{id} runs on"));
    }
    None
}

#[test]
fn no_error_keeps_a_run_that_is_over() {
    let mut checked = 0;
    for name in case::names().iter().filter(|name| case::is_workspace(name)) {
        for (error, change) in errors() {
            let request = overdue(name, &change);
            let observed = observed(&request);
            let response = answer(&case::parse(request));
            let all = resources(&response);
            for (resource, object) in &observed {
                let why = runs(resource, object, &all);
                assert_eq!(why, None, "{name} with {error}");
            }
            if !observed.is_empty() {
                let lifecycle = &case::status(&response)["lifecycle"];
                assert!(
                    lifecycle["stoppedBecause"].is_string(),
                    "{name} with {error}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 500, "{checked}");
}

#[test]
fn no_error_hides_what_a_workspace_costs() {
    let mut checked = 0;
    for name in case::names().iter().filter(|name| case::is_workspace(name)) {
        for (error, change) in errors() {
            let mut request = case::request_json(name);
            let cost = "/observed/composite/resource/status/cost";
            if request.pointer(cost).is_none() {
                continue;
            }
            case::merge(&mut request, &change);
            let status = case::status(&answer(&case::parse(request)));
            assert!(status["cost"].is_object(), "{name} with {error}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}
