//! Bad requests: the function tells the user what to change, and drops nothing.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../case/mod.rs"]
mod case;
mod table;

use std::collections::BTreeSet;

use function_sdk_rust::proto::v1::{RunFunctionResponse, Severity, Status};
use function_sdk_rust::resource::struct_to_json;
use serde_json::{Value, json};

use case::answer;
use table::REFUSED;

fn fatal(response: &RunFunctionResponse) -> Option<&str> {
    said(response, Severity::Fatal)
}

fn said(response: &RunFunctionResponse, severity: Severity) -> Option<&str> {
    let mut results = response.results.iter();
    let said = results.find(|result| result.severity == severity as i32)?;
    Some(&said.message)
}

#[test]
fn a_refusal_names_the_field_and_the_next_step() {
    for (name, message) in REFUSED {
        let request = case::request(&format!("refused-{name}"));
        let response = answer(&request);
        let is_workspace = case::is_workspace(&format!("refused-{name}"));
        // A fatal result is only for a request without a composite of a known kind.
        let is_known = !["composite", "kind", "kind-of-another-group"].contains(name);
        let severity = if is_known {
            Severity::Warning
        } else {
            Severity::Fatal
        };
        let said = said(&response, severity).unwrap_or_default();
        assert_eq!(said, *message, "{name}");
        let resolved = &response.conditions[0];
        assert_eq!(resolved.r#type, "ConfigResolved", "{name}");
        assert_eq!(resolved.status, Status::ConditionFalse as i32, "{name}");
        assert_eq!(resolved.message.as_deref(), Some(said), "{name}");
        if !is_known {
            let nothing_is_applied = response.desired == request.desired;
            assert!(nothing_is_applied, "{name}: nothing may be half applied");
            continue;
        }
        let [observed, desired] = [&request.observed, &response.desired].map(|state| {
            state
                .as_ref()
                .unwrap()
                .resources
                .keys()
                .collect::<BTreeSet<_>>()
        });
        assert_eq!(desired, observed, "{name}: everything observed stays");
        let status = case::status(&response);
        if observed.is_empty() || !is_workspace {
            assert_eq!(status["message"], *message, "{name}");
        }
        if observed.is_empty() && is_workspace {
            assert_eq!(status["phase"], "Failed", "{name}");
        }
    }
    let refused = case::names()
        .iter()
        .filter(|name| name.starts_with("refused-"))
        .count();
    assert_eq!(refused, REFUSED.len(), "every refusal is named here");
}

#[test]
fn a_bad_edit_does_not_hide_that_the_workspace_runs() {
    let unreadable = json!({"input": {"cluster": {"queues": true}}});
    let without_policy = answer(&case::changed("cluster-works", &unreadable));
    for response in [
        answer(&case::request("refused-while-running")),
        answer(&case::request("refused-cluster-placement")),
        answer(&case::request("refused-ec2-placement")),
        without_policy,
    ] {
        assert_eq!(response.conditions[1].r#type, "ComputeReady");
        assert_eq!(response.conditions[1].status, Status::ConditionTrue as i32);
    }
}

/// Replaces every part of a request by every kind of nonsense. The function must answer, and must
/// neither delete the instance nor change its image.
#[test]
fn a_mangled_request_never_panics_and_never_costs_the_instance() {
    let request = case::request_json("ready");
    let roots = [
        "/input",
        "/observed/composite/resource",
        "/observed/resources/pool/resource",
        "/requiredResources/catalogue/items/0/resource",
    ];
    let mut places = Vec::new();
    for root in roots {
        collect(root.to_owned(), request.pointer(root).unwrap(), &mut places);
    }
    assert!(places.len() > 100, "{}", places.len());
    let nonsense = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!(""),
        json!("x"),
        json!("0.0.0.0/0"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"": {"": null}}),
        json!("\u{0}\n---\n"),
    ];
    let mut held = 0;
    for place in &places {
        for value in &nonsense {
            let mut request = request.clone();
            *request.pointer_mut(place).unwrap() = value.clone();
            let Ok(parsed) = serde_json::from_value(request) else {
                continue; // no message of the protocol
            };
            let response = answer(&parsed);
            if fatal(&response).is_some() {
                continue;
            }
            held += 1;
            let pool = response.desired.as_ref().unwrap().resources.get("pool");
            let pool = pool.unwrap_or_else(|| panic!("{place} = {value} deletes the pool"));
            let pool = struct_to_json(pool.resource.as_ref().unwrap());
            if !place.starts_with("/observed/resources/pool/resource") && !place.contains("/image/")
            {
                let id = &pool["spec"]["forProvider"]["image"]["id"];
                assert_eq!(id, "ami-00000000000c0de01", "{place} = {value}");
            }
        }
    }
    assert!(held > 200, "{held}");
}

fn collect(place: String, value: &Value, places: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(format!("{place}/{key}"), child, places);
            }
        }
        Value::Array(items) => {
            for (n, child) in items.iter().enumerate() {
                collect(format!("{place}/{n}"), child, places);
            }
        }
        _ => {}
    }
    places.push(place);
}

/// Without its external name, the provider would create an empty volume in the place of the home.
#[test]
fn a_home_of_the_other_placement_keeps_its_external_name() {
    let name = "crossplane.io/external-name";
    let volume = json!({"resource": {
        "apiVersion": "ec2.aws.m.upbound.io/v1beta1",
        "kind": "EBSVolume",
        "metadata": {"name": "alice-home", "annotations": {name: "vol-0000000000000a11c"}},
        "spec": {"forProvider": {"region": "us-east-1"}},
    }});
    let request = case::changed(
        "cluster-ready",
        &json!({"observed": {"resources": {"home": volume}}}),
    );
    let response = answer(&request);
    let home = &response.desired.as_ref().unwrap().resources["home"];
    let home = struct_to_json(home.resource.as_ref().unwrap());
    assert_eq!(
        home["metadata"]["annotations"][name],
        "vol-0000000000000a11c"
    );
}
