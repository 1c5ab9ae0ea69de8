//! No error of claim, policy or catalogue switches off a limit.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use serde_json::{Map, Value, json};

use case::{answer, compute, resources};

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
        &json!({"input": {"lifecycle": {"maxLifetime": bounds, "maxExtension": null}}}),
    );
    begin(&mut request, &lifecycle);
    case::merge(&mut request, error);
    request
}

fn observed(request: &Value) -> Map<String, Value> {
    let resources = request.pointer("/observed/resources");
    let resources = resources.and_then(Value::as_object).cloned();
    resources.unwrap_or_default()
}

/// A case whose run began a month ago, with an error. No call recorded a limit, and only the
/// platform has one.
fn overdue_by_the_platform(name: &str, error: &Value) -> Value {
    let mut request = case::request_json(name);
    begin(&mut request, &json!({"startedAt": "2026-10-20T12:00:00Z"}));
    case::merge(&mut request, error);
    let lifecycle = json!({"maxLifetime": "1h", "maxExtension": "0s"});
    limit(&mut request, &json!({"lifecycle": lifecycle}));
    request
}

/// Replaces the lifecycle that the last call recorded.
fn begin(request: &mut Value, lifecycle: &Value) {
    for lifecycle in [&Value::Null, lifecycle] {
        let status = json!({"status": {"lifecycle": lifecycle}});
        case::merge(
            request,
            &json!({"observed": {"composite": {"resource": status}}}),
        );
    }
}

/// Adds the platform's limits to a request.
fn limit(request: &mut Value, data: &Value) {
    let limits = json!({
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {"name": case::LIMITS},
        "data": data
    });
    let items = json!([{"resource": limits}]);
    case::merge(
        request,
        &json!({"requiredResources": {"limits": {"items": items}}}),
    );
}

#[test]
fn no_policy_is_laxer_than_the_platform() {
    let mut checked = 0;
    for name in case::names().iter().filter(|name| case::is_workspace(name)) {
        let mut request = case::request_json(name);
        let none = json!({
            "allowedInstanceTypes": ["x1.metal"], "cluster": {"allowedFlavors": []}
        });
        limit(&mut request, &none);
        let observed = observed(&request);
        let all = resources(&answer(&case::parse(request)));
        for (resource, desired) in &all {
            if observed.contains_key(resource) {
                continue;
            }
            let why = compute::runs(resource, desired, &all);
            assert_eq!(why, None, "{name}");
            assert!(
                !resource.starts_with("instance-"),
                "{name} starts {resource}"
            );
        }
        checked += 1;
    }
    assert!(checked > 150, "{checked}");
}

#[test]
fn no_policy_keeps_a_run_that_is_over_by_the_platforms_limits() {
    no_run_stays(overdue_by_the_platform);
}

#[test]
fn no_error_keeps_a_run_that_is_over() {
    no_run_stays(overdue);
}

fn no_run_stays(overdue: fn(&str, &Value) -> Value) {
    let mut checked = 0;
    for name in case::names().iter().filter(|name| case::is_workspace(name)) {
        for (error, change) in errors() {
            let request = overdue(name, &change);
            let observed = observed(&request);
            if observed.is_empty() {
                continue;
            }
            let response = answer(&case::parse(request));
            let all = resources(&response);
            for (resource, object) in &observed {
                let why = compute::runs(resource, &object["resource"], &all);
                assert_eq!(why, None, "{name} with {error}");
            }
            let lifecycle = &case::status(&response)["lifecycle"];
            assert!(
                lifecycle["stoppedBecause"].is_string(),
                "{name} with {error}"
            );
            checked += 1;
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
