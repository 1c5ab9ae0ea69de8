//! `AccessReady` of workspaces that the bastion does not reach.

use function_sdk_rust::proto::v1::{RunFunctionResponse, Status};
use serde_json::{Value, json};

use crate::case::{self, answer};
use crate::{VERSIONS, answered, group, networks, only, pods, request, without_claims_networks};

const MACHINES: &str = "the policy's bastion does not reach machines on EC2: only the platform team \
                        can set bastion.cidrs or bastion.securityGroupId of the policy";
const PODS: &str = "the policy's bastion does not reach pods: only the platform team can set \
                    bastion.namespace and bastion.podLabels of the policy";

fn alone(name: &str, version: &str, bastion: &Value) -> RunFunctionResponse {
    let mut request = request(name, version, bastion);
    without_claims_networks(&mut request);
    answer(&case::parse(request))
}

/// The status, reason and message of `AccessReady`.
fn access(response: &RunFunctionResponse) -> (bool, &str, &str) {
    let access = case::condition(response, "AccessReady");
    let holds = access.status == Status::ConditionTrue as i32;
    (holds, &access.reason, access.message())
}

#[test]
fn nothing_is_launched_that_neither_a_network_nor_the_bastion_reaches() {
    let response = alone("new-workspace", "v3", &pods());
    let message = format!(
        "nobody can connect: {MACHINES}; or add the networks you connect from to \
         spec.parameters.ssh.allowedCidrs"
    );
    let closed = (false, "BastionOutOfReach", message.as_str());
    assert_eq!(access(&response), closed);
    assert_eq!(case::status(&response)["message"], message);
    assert!(case::resources(&response).is_empty());

    let response = alone("new-workspace", "v3", &only(pods()));
    let message =
        format!("nobody can connect: bastion.only closes all other networks, and {MACHINES}");
    assert_eq!(access(&response), (false, "BastionOutOfReach", &*message));
    assert!(case::resources(&response).is_empty());

    // The bastion's way to pods is none to machines, and the other way round.
    let response = alone("cluster-new", "v3", &only(networks()));
    let message = format!("nobody can connect: bastion.only closes all other networks, and {PODS}");
    assert_eq!(access(&response), (false, "BastionOutOfReach", &*message));
    assert!(!case::resources(&response).contains_key("cluster-stateful-set"));
}

#[test]
fn a_workspace_that_runs_past_its_bastion_says_so_and_is_as_before() {
    for (name, bastion, message) in [
        ("ready", pods(), MACHINES),
        ("cluster-ready", networks(), PODS),
        ("cluster-ready", group(), PODS),
    ] {
        for version in VERSIONS {
            let before = answered(name, version, &Value::Null);
            let response = answered(name, version, &bastion);
            let same = case::resources(&response) == case::resources(&before);
            assert!(same, "{name} {version}");
            assert_eq!(case::status(&response), case::status(&before));
            if version == "v3" {
                assert_eq!(access(&response), (true, "BastionOutOfReach", message));
                assert_eq!(access(&before), (true, "Reachable", ""));
                continue;
            }
            // Earlier versions have no such condition.
            let config = case::condition(&response, "ConfigResolved");
            assert!(config.message().contains(message), "{config:?}");
        }
    }
}

/// The API server forwards a port to a pod that no network may connect to.
#[test]
fn a_pod_without_a_network_starts_past_the_bastion() {
    for version in VERSIONS {
        let response = alone("cluster-new", version, &networks());
        let made = case::resources(&response);
        assert!(made.contains_key("cluster-stateful-set"), "{version}");
        let config = case::condition(&response, "ConfigResolved");
        let told = format!("nobody can connect: {PODS}; or add the networks");
        assert!(config.message().contains(&told), "{config:?}");
        if version == "v3" {
            assert_eq!(access(&response), (true, "BastionOutOfReach", PODS));
        }
    }
}

/// The function's answer to the case `name`, in which the workspace does not run. The observed
/// composite has the condition `AccessReady` with the status `True`. The policy has
/// `bastion.podLabels` and no `bastion.cidrs`. `input` is a merge patch of the policy.
fn at_rest_after_reachable(name: &str, input: &Value) -> RunFunctionResponse {
    let mut request = request(name, "v3", &pods());
    without_claims_networks(&mut request);
    case::merge(&mut request, &json!({"input": input}));
    let reachable = json!([{
        "type": "AccessReady", "status": "True", "reason": "Reachable",
        "lastTransitionTime": "2026-11-20T10:00:05Z",
    }]);
    let status = request.pointer_mut("/observed/composite/resource/status");
    status.unwrap()["conditions"] = reachable;
    answer(&case::parse(request))
}

/// The platform team can change the bastion while a workspace rests, so the report of the last
/// run does not count.
#[test]
fn a_stopped_workspace_says_who_could_connect_today() {
    for (name, phase) in [
        ("lifecycle-expired", "Expired"),
        ("lifecycle-on-demand-stops", "Stopping"),
        ("lifecycle-on-demand-stopped", "Stopped"),
    ] {
        let response = at_rest_after_reachable(name, &json!({}));
        let (holds, reason, _) = access(&response);
        assert_eq!((holds, reason), (false, "BastionOutOfReach"), "{name}");
        assert_eq!(case::status(&response)["phase"], phase, "{name}");
    }
}

#[test]
fn a_stopped_workspace_says_who_could_connect_although_its_type_is_withdrawn() {
    let other = json!({"allowedInstanceTypes": ["x1.metal"]});
    let response = at_rest_after_reachable("lifecycle-on-demand-stopped", &other);
    let (holds, reason, _) = access(&response);
    assert_eq!((holds, reason), (false, "BastionOutOfReach"));
}

/// Whom the security groups of others admit is not known.
#[test]
fn a_machine_in_the_groups_of_the_catalogue_is_not_complained_of() {
    let mut request = request("ready", "v3", &pods());
    without_claims_networks(&mut request);
    let data = request.pointer_mut("/requiredResources/catalogue/items/0/resource/data");
    let groups = json!({"us-east-1": {"securityGroupIds": ["sg-0123456789abcdef0"]}});
    data.unwrap()["networks"] = groups;
    let response = answer(&case::parse(request));
    assert_eq!(access(&response), (true, "Reachable", ""));
}

/// A claim that is refused is as reachable as it was when it was valid last.
#[test]
fn a_refused_claim_keeps_what_was_said_of_the_bastion() {
    for (status, reason) in [
        ("True", "BastionOutOfReach"),
        ("False", "BastionOutOfReach"),
    ] {
        let mut request = request("ready", "v3", &pods());
        let refused = json!({"observed": {"composite": {"resource": {
            "spec": {"parameters": {"region": "mars"}},
            "status": {"conditions": [{
                "type": "AccessReady", "status": status, "reason": reason, "message": MACHINES,
                "lastTransitionTime": "2026-11-20T10:00:05Z",
            }]},
        }}}});
        case::merge(&mut request, &refused);
        let response = answer(&case::parse(request));
        let config = case::condition(&response, "ConfigResolved");
        assert_eq!(config.reason, "ParametersInvalid");
        assert_eq!(access(&response), (status == "True", reason, MACHINES));
    }
}
