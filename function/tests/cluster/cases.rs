//! The golden cases, each with one further event.

use serde_json::{Value, json};

use crate::case;
use crate::oracle::{Answer, Outcome};
use crate::request::{answer, changed};
use crate::sight::{SET, Sight};
use crate::steadiness;

/// In `make test`, one event in this many is checked by the rules that need several answers.
const STRIDE: usize = 5;

/// The events that may happen in every case.
pub fn events() -> Vec<Value> {
    let parameters = |change: Value| json!({"observed": {"composite": {"resource": {"spec": {"parameters": change}}}}});
    let set = |change: Value| json!({"observed": {"resources": {SET: {"resource": change}}}});
    let found = |name: &str| json!({"requiredResources": {name: null}});
    let empty = |name: &str| json!({"requiredResources": {name: {"items": []}}});
    let queue = json!({"default": "interactive"});
    let small = |ordinal: u32| {
        json!({"resource": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": format!("home-alice-notebook-{ordinal}"),
                "namespace": "dev-alice",
                "labels": {
                    "platform.acme.io/cluster-workspace": "alice-notebook",
                    "platform.acme.io/owner": "alice",
                },
            },
            "spec": {"resources": {"requests": {"storage": "20Gi"}}},
            "status": {"phase": "Bound"},
        }})
    };
    vec![
        json!({}),
        parameters(json!({"lifecycle": {"state": "Stopped"}})),
        parameters(json!({"lifecycle": null})),
        parameters(json!({"home": null})),
        parameters(json!({"home": {"sizeGiB": 100}})),
        json!({
            "observed": {"composite": {"resource": {"spec": {"parameters": {
                "home": {"sizeGiB": 100}, "distributed": {"nodes": 2},
            }}}}},
            "requiredResources": {"homes": {"items": [small(0), small(1)]}},
        }),
        parameters(json!({"owner": "bob"})),
        parameters(json!({"flavor": "a100"})),
        parameters(json!({"placement": "EC2"})),
        parameters(json!({"placement": null})),
        parameters(json!({"distributed": {"nodes": 2}})),
        parameters(json!({"overrides": {"memory": "32Gi"}})),
        parameters(json!({"overrides": {"memory": "64Gi"}})),
        parameters(json!({"queue": {"name": "other"}})),
        json!({"input": {"home": {"onDelete": "Delete"}}}),
        json!({"input": {"home": {"onDelete": "Retain"}}}),
        json!({"input": {"cluster": null}}),
        json!({"input": {"cluster": {"queue": null}}}),
        json!({"input": {"cluster": {"queue": queue}}}),
        json!({"input": {"cluster": {"domain": "other.local"}}}),
        json!({"input": null}),
        json!({"requiredResources": null}),
        found("catalogue"),
        found("flavor"),
        found("pods"),
        found("homes"),
        found("workloads"),
        empty("flavor"),
        empty("pods"),
        empty("homes"),
        empty("workloads"),
        json!({"observed": {"composite": {"resource": {"status": null}}}}),
        json!({"observed": {"composite": {"resource": {"status": {"phase": "Ready"}}}}}),
        set(json!({"metadata": {"deletionTimestamp": "2026-11-20T10:00:05Z"}})),
        set(json!({"metadata": {"annotations": null}})),
        set(json!({"metadata": {"generation": 2}})),
        set(json!({"spec": {"replicas": 0}})),
        set(json!({"spec": {"replicas": 0}, "status": {"replicas": 0}})),
        set(json!({"spec": {"volumeClaimTemplates": null}})),
        set(json!({"status": null})),
        json!({"observed": {"resources": {"home": {"resource": {"kind": "EBSVolume"}}}}}),
        json!({"observed": {"resources": {"cluster-host-keys": {"resource": {"data": null}}}}}),
    ]
}

/// Checks each case with every `stride`th event, and returns the first 12 failures. Each event happens
/// in every `stride`th case.
fn broken(stride: usize, check: impl Fn(&Value) -> Outcome) -> Vec<String> {
    let names = case::names();
    let names: Vec<&String> = names.iter().filter(|n| case::is_in_cluster(n)).collect();
    assert!(names.len() > 40, "{names:?}");
    let events = events();
    let mut broken = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let request = case::request_json(name);
        for event in events.iter().skip(at % stride).step_by(stride) {
            if let Err(what) = check(&changed(&request, event)) {
                broken.push(format!("{name} with {event}: {what}"));
            }
        }
    }
    broken.truncate(12);
    broken
}

#[test]
fn whatever_happens_nothing_is_lost_and_nobody_is_thrown_out() {
    let broken = broken(1, |request| {
        let response = answer(request);
        let sight = Sight(request);
        let response = &response;
        Answer { sight, response }.check()
    });
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A check needs about fifteen answers. `THOROUGH` checks every second event in each case.
#[test]
fn whatever_happens_the_answer_is_steady() {
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let stride = if is_thorough { 2 } else { STRIDE };
    let broken = broken(stride, steadiness::check);
    assert!(broken.is_empty(), "{broken:#?}");
}
