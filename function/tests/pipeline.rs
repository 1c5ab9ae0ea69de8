//! The behaviour on which Crossplane and the other steps of a pipeline rely.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;

use function_sdk_rust::proto::v1::{
    Ready, Requirements, RunFunctionResponse, Severity, resource_selector,
};
use function_sdk_rust::resource::struct_to_json;
use function_server::decode::call::Call;
use prost::Message;
use serde_json::json;

use case::answer;

fn is_fatal(response: &RunFunctionResponse) -> bool {
    let mut results = response.results.iter();
    results.any(|result| result.severity == Severity::Fatal as i32)
}

#[test]
fn what_earlier_steps_desire_survives_this_step() {
    let request = case::request("earlier-steps");
    let response = answer(&request);
    let (before, after) = (request.desired.unwrap(), response.desired.clone().unwrap());
    assert_eq!(after.resources["bucket"], before.resources["bucket"]);
    assert_eq!(after.resources.len(), 2);
    let (before, after) = (before.composite.unwrap(), after.composite.unwrap());
    assert_eq!(
        after.connection_details["bucket"],
        before.connection_details["bucket"]
    );
    let status = struct_to_json(&after.resource.unwrap())["status"].clone();
    assert_eq!(status["bucketName"], "alice-vision-data");
    assert_eq!(status["phase"], "Ready");
    assert_eq!(response.context, request.context);
}

#[test]
fn a_refused_claim_passes_on_what_earlier_steps_desire_untouched() {
    let parameters = json!({"parameters": {"owner": "-"}});
    let change = json!({"observed": {"composite": {"resource": {"spec": parameters}}}});
    let request = case::changed("earlier-steps", &change);
    let response = answer(&request);
    assert!(!is_fatal(&response));
    let [after, before] = [&response, &answer(&case::request("earlier-steps"))]
        .map(|response| BTreeMap::from_iter(response.desired.clone().unwrap().resources));
    for (name, earlier) in request.desired.unwrap().resources {
        assert_eq!(after[&name], earlier, "{name}");
    }
    assert!(after.keys().eq(before.keys()), "{:?}", after.keys());
    assert_eq!(response.context, request.context);
}

#[test]
fn every_response_carries_its_requests_tag() {
    for name in case::names() {
        let response = answer(&case::request(&name));
        assert_eq!(response.meta.unwrap().tag, "c0ffee", "{name}");
    }
}

#[test]
fn a_catalogue_that_is_away_deletes_no_instance_and_changes_no_field() {
    for name in [
        "held-without-a-catalogue",
        "held-before-the-catalogue-is-fetched",
        "held-for-an-unknown-image",
    ] {
        let request = case::request(name);
        let observed = struct_to_json(
            request.observed.as_ref().unwrap().resources["pool"]
                .resource
                .as_ref()
                .unwrap(),
        );
        let response = answer(&request);
        let held = case::pool(&response).unwrap();
        assert_eq!(held["spec"], observed["spec"], "{name}");
        assert_eq!(held["apiVersion"], observed["apiVersion"], "{name}");
        assert_eq!(held["kind"], observed["kind"], "{name}");
        // The API server refuses an apply with managedFields. The status belongs to the provider.
        let metadata = json!({
            "name": observed["metadata"]["name"],
            "namespace": observed["metadata"]["namespace"],
        });
        assert_eq!(held["metadata"], metadata, "{name}");
        assert_eq!(held.get("status"), None, "{name}");
        let desired = response.desired.as_ref().unwrap();
        assert_eq!(
            desired.resources["pool"].ready,
            Ready::True as i32,
            "{name}"
        );
    }
}

/// While the requirements change, Crossplane repeats the call, up to five times, and then gives up.
/// So the fetched resources must not change the requirements, other than the platform's limits.
#[test]
fn what_is_required_does_not_depend_on_what_was_fetched() {
    for name in case::names() {
        let request = case::request(&name);
        let required = answer(&request).requirements;
        let mut first = request.clone();
        first.required_resources.retain(|name, _| name == "limits");
        assert_eq!(answer(&first).requirements, required, "{name}");
    }
}

/// The platform's limits may require a namespace or a user, so they need one more call.
#[test]
fn the_platforms_limits_settle_what_is_required_within_three_calls() {
    let mut slowest = 0;
    for name in case::names().iter().filter(|name| case::is_workspace(name)) {
        let whole = case::request(name);
        let mut last = None;
        let calls = (1..=5).find(|_| {
            let mut request = whole.clone();
            let asked = |name: &String| {
                let last: Option<&Requirements> = last.as_ref();
                last.is_some_and(|last| last.resources.contains_key(name))
            };
            request.required_resources.retain(|name, _| asked(name));
            let encoded = request.encode_to_vec();
            let call = Call::read(&encoded, case::limited()).unwrap();
            let answered =
                function_server::answer::answer(case::limited(), call, case::now(), |_, _| {});
            let required = case::received(&answered).requirements;
            std::mem::replace(&mut last, required.clone()) == required
        });
        // Crossplane compares what two calls require, so a stable answer needs two.
        slowest = slowest.max(calls.unwrap_or_else(|| panic!("{name} never settles")));
    }
    assert_eq!(slowest, 3);
}

#[test]
fn the_catalogue_is_required_the_same_way_on_every_call() {
    for name in case::names().iter().filter(|name| case::is_workspace(name)) {
        let response = answer(&case::request(name));
        // Without a policy it is not known which one.
        if name.starts_with("refused-policy") || case::request_json(name)["input"].is_null() {
            let required = response.requirements.unwrap_or_default().resources;
            assert!(!required.contains_key("catalogue"), "{name}");
            continue;
        }
        let requirements = response.requirements.unwrap();
        let catalogue = &requirements.resources["catalogue"];
        assert_eq!(catalogue.api_version, "apiextensions.crossplane.io/v1beta1");
        assert_eq!(catalogue.kind, "EnvironmentConfig");
        assert_eq!(catalogue.namespace, None);
        let by_name = resource_selector::Match::MatchName("gpu-workspaces".into());
        assert_eq!(catalogue.r#match, Some(by_name), "{name}");
    }
}

#[test]
fn the_function_is_asked_again_when_the_policy_says_so() {
    let ttl = |name: &str| {
        answer(&case::request(name))
            .meta
            .unwrap()
            .ttl
            .unwrap()
            .seconds
    };
    assert_eq!(ttl("ready"), 300);
    assert_eq!(ttl("provisioning"), 300);
    assert_eq!(ttl("held-without-a-catalogue"), 300);
    assert_eq!(ttl("only-an-owner"), 600);
    assert_eq!(ttl("refused-region"), 60);
    assert_eq!(ttl("refused-policy-missing"), 60);
}

/// Argo CD prunes an object with its tracking id, and Kueue suspends an object with its queue
/// label. The pool must have neither.
#[test]
fn the_pool_is_named_by_crossplane_and_carries_nobody_elses_labels() {
    let metadata =
        |name: &str| case::pool(&answer(&case::request(name))).unwrap()["metadata"].clone();
    assert_eq!(
        metadata("new-workspace"),
        json!({"namespace": "team-vision"})
    );
    assert_eq!(metadata("modern-xr"), json!({"namespace": "team-vision"}));
    assert_eq!(metadata("ready"), json!({"namespace": "team-vision"}));
}

#[test]
fn composed_keys_are_names_that_kubernetes_takes() {
    for name in case::names() {
        let resources = answer(&case::request(&name))
            .desired
            .unwrap_or_default()
            .resources;
        for key in resources.keys() {
            let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(key.chars().all(valid) && key.len() <= 63, "{name}: {key}");
        }
    }
}

#[test]
fn the_tags_say_whose_instance_it_is() {
    let tags = |name: &str| {
        case::pool(&answer(&case::request(name))).unwrap()["spec"]["forProvider"]["tags"].clone()
    };
    let expected = json!({
        "cost-center": "research", "owner": "alice", "workspace": "team-vision/alice-vision"
    });
    assert_eq!(tags("new-workspace"), expected);
    assert_eq!(tags("modern-xr"), expected);
}

/// The CRD refuses a pool with both `ssh` and `securityGroupIds`.
#[test]
fn security_groups_of_the_platform_replace_the_pools_own() {
    let pool = case::pool(&answer(&case::request("ready-in-a-private-subnet"))).unwrap();
    let parameters = &pool["spec"]["forProvider"];
    assert_eq!(
        parameters["securityGroupIds"],
        json!(["sg-00000000000000001"])
    );
    assert_eq!(parameters.get("ssh"), None);
}

/// Reads the same request 5 times, or 10 times with `THOROUGH`, and each time its maps get another
/// order. A map with two entries keeps its order in every second request, but most maps occur in
/// many cases.
#[test]
fn the_same_request_gives_the_same_bytes() {
    let bytes = |response: &RunFunctionResponse| case::response_json(response).to_string();
    let user_data = |response: &RunFunctionResponse| {
        case::pool(response).map(|pool| pool["spec"]["forProvider"]["userData"].clone())
    };
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let repetitions = if is_thorough { 10 } else { 5 };
    for name in case::names() {
        let request = case::request_json(&name);
        let first = answer(&case::parse(request.clone()));
        let (first_bytes, first_user_data) = (bytes(&first), user_data(&first));
        for _ in 0..repetitions {
            let again = answer(&case::parse(request.clone()));
            assert_eq!(again, first, "{name}");
            assert_eq!(bytes(&again), first_bytes, "{name}");
            assert_eq!(user_data(&again), first_user_data, "{name}");
        }
    }
}

/// A Struct has only floating-point numbers. Crossplane reads 100.0 as 100. The API server refuses
/// 1.5 where it wants an integer.
#[test]
fn whole_numbers_stay_whole() {
    let pool = case::pool(&answer(&case::request("new-workspace"))).unwrap();
    let parameters = &pool["spec"]["forProvider"];
    assert_eq!(
        parameters["size"],
        json!({"minimum": 1, "maximum": 1, "idle": 0})
    );
    assert_eq!(parameters["rootVolumeSizeGiB"], json!(100));
}

/// gRPC refuses messages beyond 4 MiB, unless the receiver raises the limit.
#[test]
fn a_response_is_far_below_the_size_that_grpc_refuses() {
    for name in case::names() {
        let response = answer(&case::request(&name));
        // The pods' programs have a ConfigMap of their own and a separate limit.
        let programs = response.desired.iter();
        let programs = programs.filter_map(|desired| desired.resources.get("cluster-files"));
        let programs: usize = programs.map(Message::encoded_len).sum();
        let length = response.encoded_len();
        assert!(programs < 100 * 1024, "{name}: {programs}");
        assert!(length < 32 * 1024 + programs, "{name}: {length}");
    }
}
