//! The table of kinds: which composites the function serves, and to which kind a composed resource
//! belongs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;
use std::fs;

use function_gpu_workspace::kinds::KINDS;
use serde_json::{Value, json};

use case::answer;

/// If two kinds owned a name, one of them would drop the other's resource. If no kind owned a name,
/// the function would compose its resource and never observe it.
#[test]
fn every_composed_resource_belongs_to_exactly_one_kind() {
    let mut names = BTreeMap::new();
    for case in case::names() {
        let path = case::folder().join(&case).join("response.yaml");
        let golden: Value = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let request = case::request_json(&case);
        let composed = |of: &Value| -> Vec<String> {
            let resources = of.pointer("/desired/resources").and_then(Value::as_object);
            resources
                .into_iter()
                .flat_map(|r| r.keys().cloned())
                .collect()
        };
        let earlier = composed(&request);
        for name in composed(&golden) {
            if !earlier.contains(&name) {
                let composite = request["observed"]["composite"]["resource"].clone();
                names.insert((name, composite["kind"].to_string()), composite);
            }
        }
    }
    assert!(names.len() > 40, "{names:?}");
    for ((name, kind), composite) in names {
        let owners = KINDS.0.iter().filter(|kind| kind.owns(&name)).count();
        assert_eq!(owners, 1, "kinds that own {name}");
        let own = KINDS
            .of(&composite.into())
            .is_some_and(|kind| kind.owns(&name));
        assert!(own, "{name} is composed by {kind}, which does not own it");
    }
}

#[test]
fn a_composed_resource_never_becomes_another_kind_under_the_same_name() {
    let mut seen = 0;
    for case in case::names() {
        let request = case::request_json(&case);
        let answered = case::response_json(&answer(&case::request(&case)));
        let desired = answered.pointer("/desired/resources");
        for (name, resource) in desired.and_then(Value::as_object).into_iter().flatten() {
            let observed = &request["observed"]["resources"][name]["resource"];
            if observed.is_null() {
                continue;
            }
            seen += 1;
            for field in ["apiVersion", "kind"] {
                let desired = &resource["resource"][field];
                assert_eq!(*desired, observed[field], "{case}: {name}");
            }
        }
    }
    assert!(seen > 200, "only {seen} desired resources are observed");
}

#[test]
fn a_composite_of_an_unknown_kind_is_refused_with_the_known_ones_and_gets_nothing() {
    for (case, unknown) in [
        ("refused-kind", "StockPool.platform.acme.io"),
        (
            "refused-kind-of-another-group",
            "DevUser.people.example.org",
        ),
    ] {
        let response = answer(&case::request(case));
        assert_eq!(response.desired, None, "{case}");
        let [result] = response.results.as_slice() else {
            panic!("{case}: {:?}", response.results)
        };
        assert_eq!(result.severity, 1, "{case}: not fatal");
        for word in [
            unknown,
            "GpuDevWorkspace.platform.acme.io",
            "WorkspaceFlavor.platform.acme.io",
            "DevUser.platform.acme.io",
        ] {
            assert!(result.message.contains(word), "{case}: {}", result.message);
        }
    }
}

/// Otherwise the function would read these resources, and drop them, as if they belonged to a
/// workspace.
#[test]
fn resources_of_an_unknown_kind_are_not_looked_at() {
    let change = json!({"observed": {"composite": {"resource": {"kind": "StockPool"}}}});
    let response = answer(&case::changed("on-demand-ready", &change));
    let results: Vec<i32> = response
        .results
        .iter()
        .map(|result| result.severity)
        .collect();
    assert_eq!((results, response.desired), (vec![1], None));
}
