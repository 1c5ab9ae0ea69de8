//! What the function tells the user of a workspace.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use function_sdk_rust::proto::v1::{Ready, Severity, Status, Target};
use serde_json::json;

use case::answer;

/// Whether Crossplane applies the response: it has no fatal result.
fn is_applied(name: &str) -> bool {
    let response = answer(&case::request(name));
    let mut results = response.results.iter();
    !results.any(|result| result.severity == Severity::Fatal as i32)
}

/// Server-side apply removes a status field that the function does not send again.
#[test]
fn no_status_field_is_lost_between_calls() {
    for name in case::names().iter().filter(|name| is_applied(name)) {
        let first = answer(&case::request(name));
        let second = case::status(&answer(&case::after(name, &first)));
        assert_eq!(second, case::status(&first), "{name}");
    }
}

#[test]
fn news_are_told_once() {
    let told = |name: &str| {
        let response = answer(&case::request(name));
        let results = response.results.iter();
        results
            .map(|r| (r.severity, r.reason.clone().unwrap()))
            .collect::<Vec<_>>()
    };
    let warning = Severity::Warning as i32;
    assert_eq!(
        told("becoming-ready"),
        [(Severity::Normal as i32, "WorkspaceReady".into())]
    );
    assert_eq!(
        told("interrupted"),
        [(warning, "WorkspaceInterrupted".into())]
    );
    assert_eq!(
        told("interruption-announced"),
        [(warning, "InterruptionWarning".into())]
    );
    assert_eq!(told("quota-failure"), [(warning, "WorkspaceFailed".into())]);
    for quiet in [
        "new-workspace",
        "provisioning",
        "ready",
        "interrupted-without-capacity",
        "provider-cannot-look",
    ] {
        assert_eq!(told(quiet), [], "{quiet}");
    }
    for name in case::names().iter().filter(|name| is_applied(name)) {
        let first = answer(&case::request(name));
        let second = answer(&case::after(name, &first));
        assert_eq!(second.results, [], "{name}");
    }
}

/// Crossplane sets a condition that is missing from a fatal response to Unknown.
#[test]
fn the_claim_hears_of_every_condition_on_every_call() {
    for name in case::names() {
        let response = answer(&case::request(&name));
        let types = response.conditions.iter().map(|c| c.r#type.as_str());
        // The partition separates `WithinBudget`. A workspace has it exactly where the policy has
        // budgets.
        let budgets = case::request_json(&name)
            .pointer("/input/budgets")
            .is_some();
        let (within, types): (Vec<_>, Vec<_>) = types.partition(|t| *t == "WithinBudget");
        assert_eq!(
            within.len(),
            usize::from(budgets && case::is_workspace(&name)),
            "{name}"
        );
        let requirements = response.requirements.clone().unwrap_or_default();
        let asks_for_binding = requirements.resources.contains_key("admission");
        let (enforced, types): (Vec<_>, Vec<_>) =
            types.into_iter().partition(|t| *t == "PolicyEnforced");
        assert_eq!(enforced.len(), usize::from(asks_for_binding), "{name}");
        let (interrupting, types): (Vec<_>, Vec<_>) =
            types.into_iter().partition(|t| *t == "Interrupting");
        let is_announced = name == "interruption-announced";
        assert_eq!(interrupting.len(), usize::from(is_announced), "{name}");
        let (access, types): (Vec<_>, Vec<_>) =
            types.into_iter().partition(|t| *t == "AccessReady");
        let input = case::request_json(&name);
        let is_v3 = case::is_workspace(&name)
            && input.pointer("/input/behaviourVersion") == Some(&json!("v3"));
        let is_resolved =
            case::condition(&response, "ConfigResolved").status == Status::ConditionTrue as i32;
        assert!(access.len() <= usize::from(is_v3), "{name}");
        let tells = is_v3 && is_resolved;
        assert!(!access.is_empty() || !tells, "{name}");
        // A pool whose consoles are read, and the pods of v3, tell about the software.
        let (software, types): (Vec<_>, Vec<_>) =
            types.into_iter().partition(|t| *t == "SoftwareReady");
        let tells = is_v3 && (case::is_in_cluster(&name) || name.starts_with("v3-software-"));
        assert!(software.len() <= usize::from(tells), "{name}");
        assert!(!(software.is_empty() && tells && is_resolved), "{name}");
        // A home has a condition as soon as the function knows of it.
        let home = types
            .get(2)
            .filter(|third| !matches!(**third, "Admitted" | "StopScheduled"));
        let home = home.map(|_| "HomeReady");
        let compute = case::is_workspace(&name).then_some("ComputeReady");
        let admitted = case::has_queue(&response).then_some("Admitted");
        let stop = types.last().filter(|last| **last == "StopScheduled");
        let expected: Vec<_> = ["ConfigResolved"]
            .into_iter()
            .chain(compute)
            .chain(home)
            .chain(admitted)
            .chain(stop.copied())
            .collect();
        assert_eq!(types, expected, "{name}");
        for condition in &response.conditions {
            assert_eq!(
                condition.target,
                Some(Target::CompositeAndClaim as i32),
                "{name}"
            );
            assert!(!condition.reason.is_empty(), "{name}");
            let explained = condition.message.is_some();
            assert!(
                explained || condition.status == Status::ConditionTrue as i32,
                "{name}"
            );
        }
    }
}

/// If a message changed on every call, Crossplane would write the XR on every call.
#[test]
fn a_message_changes_only_when_its_meaning_does() {
    for name in [
        "provisioning",
        "interrupted",
        "waiting-for-capacity",
        "quota-failure",
    ] {
        let before = answer(&case::request(name));
        let later = case::with_pool(
            name,
            &json!({
                "metadata": {"resourceVersion": "9999", "generation": 7},
                "status": {"atProvider": {
                    "launchGeneration": 23,
                    "unavailableOfferings": [{
                        "instanceType": "g4dn.xlarge", "zone": "us-east-1a",
                        "capacityType": "Spot", "code": "InsufficientInstanceCapacity",
                        "until": "2026-11-20T10:05:00Z"
                    }]
                }}
            }),
        );
        assert_eq!(later, before, "{name}");
    }
}

#[test]
fn only_what_a_person_must_change_is_a_failure() {
    let phase = |reason: &str| {
        let launched = ("Launched", "False", reason, "why");
        let response = case::with_conditions(
            "waiting-for-capacity",
            &[("Synced", "True", "S", ""), launched],
        );
        assert_eq!(case::condition(&response, "ComputeReady").reason, reason);
        assert_eq!(case::status(&response)["message"], "why");
        case::status(&response)["phase"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for reason in ["Configuration", "Denied", "Quota"] {
        assert_eq!(phase(reason), "Failed", "{reason}");
    }
    for reason in ["Capacity", "Throttled", "Transient"] {
        assert_eq!(phase(reason), "Provisioning", "{reason}");
    }
}

/// While an instance runs, a failed launch is the launch of its replacement.
#[test]
fn a_failed_launch_does_not_fail_a_workspace_that_runs() {
    let failing = [
        ("Synced", "True", "S", ""),
        ("Launched", "False", "Quota", "why"),
        ("Ready", "True", "A", ""),
    ];
    let response = case::with_conditions("ready", &failing);
    assert_eq!(case::status(&response)["phase"], "Ready");
    assert_eq!(case::readiness(&response).1, Ready::True as i32);
}

/// EC2 may give the address to another customer. The user would then log in to that customer's
/// host.
#[test]
fn the_address_of_a_lost_instance_is_not_shown_any_more() {
    let response = answer(&case::request("interrupted"));
    let status = case::status(&response);
    for field in ["ssh", "publicIp", "privateIp"] {
        assert_eq!(status.get(field), None, "{field}");
    }
    assert_eq!(status["instanceId"], "i-0000000000000a11ce");
    let composite = response.desired.unwrap().composite.unwrap();
    assert!(composite.connection_details.is_empty());
}

#[test]
fn an_interrupted_workspace_stays_so_until_another_instance_runs() {
    let interrupted =
        json!({"observed": {"composite": {"resource": {"status": {"phase": "Interrupted"}}}}});
    let still = answer(&case::changed("interrupted", &interrupted));
    assert_eq!(case::status(&still)["phase"], "Interrupted");
    let change = json!({"observed": {"composite": {"resource": {"status":
        {"phase": "Interrupted", "instanceId": "i-gone", "publicIp": "192.0.2.1"}}}}});
    let back = answer(&case::changed("becoming-ready", &change));
    assert_eq!(case::status(&back)["phase"], "Ready");
    assert_eq!(case::status(&back)["instanceId"], "i-0000000000000a11ce");
    assert_eq!(case::status(&back)["publicIp"], "198.51.100.17");
}

/// The user works on the instance of the last call. A second instance may exist while the provider
/// resizes the pool.
#[test]
fn the_workspace_stays_on_its_instance_while_it_runs() {
    let instance = |id: &str, launch: i32, address: &str| {
        json!({
            "id": id, "launch": launch, "instanceType": "g4dn.xlarge",
            "zone": "us-east-1a", "capacityType": "Spot", "imageId": "ami-1",
            "state": "running", "publicIp": address
        })
    };
    let both = json!({"status": {"atProvider": {"instances": [
        instance("i-0000000000000a11ce", 1, "198.51.100.17"), instance("i-2", 2, "198.51.100.99")
    ]}}});
    assert_eq!(
        case::status(&case::with_pool("ready", &both))["ssh"],
        "ssh developer@198.51.100.17"
    );
    assert_eq!(
        case::status(&case::with_pool("becoming-ready", &both))["ssh"],
        "ssh developer@198.51.100.99"
    );
}

#[test]
fn the_connection_details_are_those_that_ssh_needs() {
    let composite = answer(&case::request("ready"))
        .desired
        .unwrap()
        .composite
        .unwrap();
    let detail = |key: &str| String::from_utf8(composite.connection_details[key].clone()).unwrap();
    assert_eq!(detail("host"), "198.51.100.17");
    assert_eq!(detail("port"), "22");
    assert_eq!(detail("user"), "developer");
    assert_eq!(detail("ssh"), "ssh developer@198.51.100.17");
    assert_eq!(composite.connection_details.len(), 4);
}

#[test]
fn before_v3_a_user_whom_nothing_lets_in_is_told_so_in_a_resolved_workspace() {
    let response = answer(&case::request("only-an-owner"));
    let resolved = case::condition(&response, "ConfigResolved");
    assert_eq!(resolved.status, Status::ConditionTrue as i32);
    assert_names_both_doors(&resolved.message.clone().unwrap());
}

#[test]
fn nothing_is_launched_for_a_user_whom_nothing_lets_in() {
    let response = answer(&case::request("v3-nobody-can-log-in"));
    let access = case::condition(&response, "AccessReady");
    assert_eq!(access.status, Status::ConditionFalse as i32);
    assert_eq!(access.reason, "NoPublicKeys");
    assert_names_both_doors(&access.message.clone().unwrap());
    assert_eq!(case::status(&response)["phase"], "Failed");
    assert_eq!(
        case::status(&response)["message"],
        access.message.clone().unwrap()
    );
    assert!(response.desired.unwrap().resources.is_empty());
}

#[test]
fn a_machine_stays_and_is_not_ready_after_its_last_network_is_taken_away() {
    for name in [
        "v3-network-removed-while-it-runs",
        "v3-access-of-a-refused-claim",
    ] {
        let response = answer(&case::request(name));
        let access = case::condition(&response, "AccessReady");
        assert_eq!(access.status, Status::ConditionFalse as i32, "{name}");
        assert_eq!(access.reason, "NoNetworks", "{name}");
        assert_eq!(case::status(&response)["phase"], "Failed", "{name}");
        let events = response.results.iter();
        let events = events.map(function_sdk_rust::proto::v1::Result::reason);
        assert!(
            !events.collect::<Vec<_>>().contains(&"WorkspaceReady"),
            "{name}"
        );
        assert_eq!(case::readiness(&response).1, Ready::False as i32, "{name}");
        let pool = case::pool(&response).unwrap();
        assert_eq!(pool["spec"]["forProvider"]["size"]["minimum"], 1, "{name}");
    }
}

#[test]
fn a_policy_may_let_workspaces_start_that_nobody_can_reach() {
    let response = answer(&case::request("v3-launched-although-nobody-can-log-in"));
    let access = case::condition(&response, "AccessReady");
    assert_eq!(access.status, Status::ConditionFalse as i32);
    let desired = response.desired.unwrap();
    assert!(desired.resources.contains_key("pool"));
    assert_eq!(desired.composite.unwrap().ready, Ready::False as i32);
}

#[test]
fn no_pod_starts_for_an_owner_without_a_key() {
    let response = answer(&case::request("cluster-v3-nobody-can-log-in"));
    let access = case::condition(&response, "AccessReady");
    assert_eq!(access.reason, "NoPublicKeys");
    let message = access.message.clone().unwrap();
    assert!(
        message.contains("spec.publicKeys of DevUser alice"),
        "{message}"
    );
    assert_eq!(case::status(&response)["phase"], "Failed");
    assert!(
        !response
            .desired
            .unwrap()
            .resources
            .contains_key("cluster-stateful-set")
    );
}

fn assert_names_both_doors(message: &str) {
    for part in [
        "nobody can log in: add a key to spec.parameters.ssh.publicKeys",
        "nobody can connect: add the networks",
    ] {
        assert!(message.contains(part), "{message}");
    }
}
