//! The bastion of a policy: it may connect to every workspace, beside the workspace's own networks
//! or instead of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod access;
#[path = "../case/mod.rs"]
mod case;
mod group;
mod roles;

use std::collections::BTreeMap;

use function_sdk_rust::proto::v1::{RunFunctionResponse, Status};
use serde_json::{Value, json};

use case::answer;

const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];
const OWN: &str = "203.0.113.0/24";
const BASTIONS: &str = "10.9.0.0/28";
const GROUP: &str = "sg-0123456789abcdef0";

/// The answer to a case under a policy with this bastion, for a claim with its own network.
fn answered(name: &str, version: &str, bastion: &Value) -> RunFunctionResponse {
    answer(&case::parse(request(name, version, bastion)))
}

fn request(name: &str, version: &str, bastion: &Value) -> Value {
    let mut request = case::request_json(name);
    let change = json!({
        "input": {
            "behaviourVersion": version,
            "bastion": bastion,
            "allowedRegions": ["us-east-1"],
        },
        "observed": {"composite": {"resource": {"spec": {"parameters": {
            "ssh": {"allowedCidrs": [OWN]}
        }}}}},
    });
    case::merge(&mut request, &change);
    request
}

fn pods() -> Value {
    json!({"namespace": "gpu-bastion", "podLabels": {"app": "gpu-bastion"}})
}

fn networks() -> Value {
    json!({"cidrs": [BASTIONS]})
}

fn group() -> Value {
    json!({"securityGroupId": GROUP})
}

fn only(mut bastion: Value) -> Value {
    bastion["only"] = json!(true);
    bastion
}

fn peer() -> Value {
    json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gpu-bastion"}},
        "podSelector": {"matchLabels": {"app": "gpu-bastion"}},
    })
}

fn ingress(resources: &BTreeMap<String, Value>) -> Value {
    resources["cluster-network-policy"]["spec"]["ingress"].clone()
}

fn by_ssh(peers: &[Value]) -> Value {
    json!([{"from": peers, "ports": [{"port": 22, "protocol": "TCP"}]}])
}

fn allowed(response: &RunFunctionResponse) -> Value {
    case::pool(response).unwrap()["spec"]["forProvider"]["ssh"]["allowedCidrs"].clone()
}

fn allowed_groups(response: &RunFunctionResponse) -> Value {
    case::pool(response).unwrap()["spec"]["forProvider"]["ssh"]["allowedSecurityGroupIds"].clone()
}

fn without_claims_networks(request: &mut Value) {
    let none = json!({
        "input": {"defaults": null},
        "observed": {"composite": {"resource": {"spec": {"parameters": {"ssh": {
            "allowedCidrs": null
        }}}}}},
    });
    case::merge(request, &none);
}

#[test]
fn the_pods_of_the_bastion_reach_the_pods_of_a_workspace_and_nothing_else_changes() {
    let own = json!({"ipBlock": {"cidr": OWN}});
    for version in VERSIONS {
        for name in ["cluster-new", "cluster-ready"] {
            let before = case::resources(&answered(name, version, &Value::Null));
            assert_eq!(
                ingress(&before),
                by_ssh(std::slice::from_ref(&own)),
                "{name} {version}"
            );
            let mut after = case::resources(&answered(name, version, &pods()));
            assert_eq!(
                ingress(&after),
                by_ssh(&[own.clone(), peer()]),
                "{name} {version}"
            );
            let key = "cluster-network-policy";
            let rules = before[key]["spec"]["ingress"].clone();
            after.get_mut(key).unwrap()["spec"]["ingress"] = rules;
            assert_eq!(after, before, "{name} {version}");
        }
        let mut alone = request("cluster-ready", version, &pods());
        without_claims_networks(&mut alone);
        let response = answer(&case::parse(alone));
        assert_eq!(ingress(&case::resources(&response)), by_ssh(&[peer()]));
        let config = case::condition(&response, "ConfigResolved");
        assert!(
            !config.message().contains("nobody can connect"),
            "{}",
            config.message()
        );
    }
}

#[test]
fn the_networks_of_the_bastion_are_open_beside_those_of_the_claim() {
    for version in VERSIONS {
        assert_eq!(
            allowed(&answered("ready", version, &networks())),
            json!([OWN, BASTIONS])
        );
        let twice = json!({"cidrs": [BASTIONS, "10.9.0.1/28", OWN]});
        assert_eq!(
            allowed(&answered("ready", version, &twice)),
            json!([OWN, BASTIONS])
        );
    }
    let rules = case::resources(&answered("on-demand-ready", "v2", &networks()));
    let rules: Vec<_> = rules.keys().filter(|key| key.starts_with("ssh-")).collect();
    assert_eq!(rules, ["ssh-10-9-0-0-28", "ssh-203-0-113-0-24"]);
}

/// The networks of the bastion are the platform's: the bounds of the policy are those of claims.
#[test]
fn the_bounds_of_claims_do_not_bound_the_bastion() {
    let mut request = request("ready", "v3", &json!({"cidrs": ["198.51.100.0/24"]}));
    let bounds = json!({"input": {"sshCidrCeiling": ["203.0.113.0/24"], "sshMaxAddresses": 256}});
    case::merge(&mut request, &bounds);
    let response = answer(&case::parse(request));
    assert_eq!(allowed(&response), json!([OWN, "198.51.100.0/24"]));
}

#[test]
fn a_machine_that_only_the_bastion_reaches_is_accessible() {
    let mut request = request("new-workspace", "v3", &networks());
    without_claims_networks(&mut request);
    let response = answer(&case::parse(request.clone()));
    assert_eq!(allowed(&response), json!([BASTIONS]));
    let access = case::condition(&response, "AccessReady");
    assert_eq!(access.status, Status::ConditionTrue as i32, "{access:?}");
    request["input"]["bastion"] = group();
    let response = answer(&case::parse(request));
    assert_eq!(allowed(&response), json!([]));
    assert_eq!(allowed_groups(&response), json!([GROUP]));
    let access = case::condition(&response, "AccessReady");
    assert_eq!(access.status, Status::ConditionTrue as i32, "{access:?}");
}

#[test]
fn a_claim_with_networks_does_not_start_where_only_the_bastion_connects() {
    for version in VERSIONS {
        for (name, bastion) in [("new-workspace", networks()), ("cluster-new", pods())] {
            let response = answered(name, version, &only(bastion));
            let config = case::condition(&response, "ConfigResolved");
            assert_eq!(config.reason, "ParametersInvalid", "{name}");
            assert_eq!(
                config.message(),
                "spec.parameters.ssh.allowedCidrs: must be empty, because the policy's bastion.only \
                 lets the bastion connect and nobody else: remove the networks, and connect through \
                 the bastion",
                "{name}"
            );
            let made = case::resources(&response);
            assert!(made.keys().all(|key| key == "workspace-record"), "{made:?}");
        }
    }
}

/// The policy's own networks are for claims that name none.
#[test]
fn the_networks_of_the_policy_are_closed_where_only_the_bastion_connects() {
    let mut request = request("new-workspace", "v3", &only(networks()));
    without_claims_networks(&mut request);
    case::merge(
        &mut request,
        &json!({"input": {"defaults": {"sshCidrs": [OWN]}}}),
    );
    assert_eq!(allowed(&answer(&case::parse(request))), json!([BASTIONS]));
}

#[test]
fn a_workspace_that_runs_stays_and_its_own_networks_are_closed() {
    // A claim that is refused for another reason keeps no network either.
    let wrong = json!({"observed": {"composite": {"resource": {"spec": {"parameters": {
        "ssh": {"publicKeys": ["no key"]}
    }}}}}});
    let observed = json!({"observed": {"resources": {
        "pool": {"resource": {"spec": {"forProvider": {"ssh": {"allowedCidrs": [OWN]}}}}},
    }}});
    for version in VERSIONS {
        for refused in [false, true] {
            let mut machine = request("ready", version, &only(networks()));
            case::merge(&mut machine, &observed);
            if refused {
                case::merge(&mut machine, &wrong);
            }
            let response = answer(&case::parse(machine));
            assert_eq!(allowed(&response), json!([BASTIONS]), "{version} {refused}");
            let size = &case::pool(&response).unwrap()["spec"]["forProvider"]["size"];
            assert_eq!(size["maximum"], 1, "{version} {refused}");
            let config = case::condition(&response, "ConfigResolved");
            assert!(
                refused || config.message().contains("cannot start again"),
                "{config:?}"
            );

            let mut rules = request("on-demand-ready", "v2", &only(networks()));
            if refused {
                case::merge(&mut rules, &wrong);
            }
            let rules = case::resources(&answer(&case::parse(rules)));
            assert!(rules.values().any(|object| object["kind"] == "Instance"));
            assert!(!rules.contains_key("ssh-203-0-113-0-24"), "{refused}");

            let mut pod = request("cluster-ready", version, &only(pods()));
            let own = json!({"observed": {"resources": {"cluster-network-policy": {"resource": {
                "spec": {"ingress": by_ssh(&[json!({"ipBlock": {"cidr": OWN}})])}
            }}}}});
            case::merge(&mut pod, &own);
            if refused {
                case::merge(&mut pod, &wrong);
            }
            let response = answer(&case::parse(pod));
            let resources = case::resources(&response);
            assert_eq!(
                ingress(&resources),
                by_ssh(&[peer()]),
                "{version} {refused}"
            );
            assert_eq!(resources["cluster-stateful-set"]["spec"]["replicas"], 1);
            let config = case::condition(&response, "ConfigResolved");
            assert!(
                refused || config.message().contains("cannot start again"),
                "{config:?}"
            );
        }
    }
}

/// A machine that its budget or the suspension of its owner holds as it is keeps no network either.
/// The bastion reaches it.
#[test]
fn a_held_machine_keeps_no_network_where_only_the_bastion_connects() {
    let mut request = request("v3-owner-suspended-while-it-runs", "v3", &only(networks()));
    without_claims_networks(&mut request);
    assert_eq!(allowed(&answer(&case::parse(request))), json!([BASTIONS]));
}
