//! `doctor` for those who work through a bastion.

use devctl_core::object::Kind;
use serde_json::{Value, json};

use crate::world::World;

const MESSAGE: &str = "the policy's bastion does not reach machines on EC2: only the platform team can \
                       set bastion.cidrs or bastion.securityGroupId of the policy";

/// The checks of a workspace whose `AccessReady` has this status and reason, by name.
fn checks(line: &str, placement: &str, access: [&str; 2], answers: bool) -> Vec<Value> {
    let world = World::new(&format!("doctor-{placement}-{}-{answers}", access[1]));
    let [status, reason] = access;
    world.put(
        Kind::Claim,
        "work",
        json!({
            "metadata": {"name": "work", "namespace": "team", "uid": "1"},
            "spec": {"parameters": {"placement": placement}},
            "status": {"phase": "Ready", "publicIp": "203.0.113.7", "conditions": [
                {"type": "AccessReady", "status": status, "reason": reason, "message": MESSAGE},
            ]},
        }),
    );
    world.answers(0, "OpenSSH_9.2p1");
    *world.is_silent.lock().unwrap() = !answers;
    world.run(line).unwrap();
    let said: Value = serde_json::from_str(&world.said()).unwrap();
    said["checks"].as_array().unwrap().clone()
}

fn check<'a>(checks: &'a [Value], name: &str) -> Option<&'a Value> {
    checks.iter().find(|one| one["check"] == name)
}

const THROUGH: &str = "doctor work -o json --bastion alice@bastion.example.com";
const PAST: &str = "doctor work -o json";
const ON_EC2: &str = "ask the platform team: only they can let the bastion connect, by bastion.cidrs \
                      or bastion.securityGroupId in the WorkspacePolicy";
const IN_PODS: &str = "ask the platform team: only they can let the bastion connect, by \
                       bastion.namespace and bastion.podLabels in the WorkspacePolicy";

#[test]
fn a_workspace_that_the_bastion_does_not_reach_is_found_with_who_can_change_it() {
    for status in ["True", "False"] {
        for (placement, next) in [("EC2", ON_EC2), ("Cluster", IN_PODS)] {
            let found = checks(THROUGH, placement, [status, "BastionOutOfReach"], true);
            let bastion = check(&found, "bastion").unwrap();
            let expected = json!({
                "check": "bastion", "state": "failed", "message": MESSAGE, "next": next,
            });
            assert_eq!(*bastion, expected, "{status} {placement}");
        }
    }
}

#[test]
fn a_workspace_that_the_bastion_reaches_passes() {
    let found = checks(THROUGH, "EC2", ["True", "Reachable"], true);
    assert_eq!(check(&found, "bastion").unwrap()["state"], "ok");
    // The owner has no key: that is no matter of the bastion.
    let found = checks(THROUGH, "EC2", ["False", "NoPublicKeys"], true);
    assert_eq!(check(&found, "bastion"), None);
}

#[test]
fn who_works_past_the_bastion_is_told_nothing_of_it() {
    let found = checks(PAST, "EC2", ["True", "BastionOutOfReach"], true);
    assert_eq!(check(&found, "bastion"), None);
}

/// Through a bastion, the network of the laptop does not matter.
#[test]
fn a_port_that_does_not_answer_the_bastion_is_no_matter_of_the_laptops_network() {
    for (line, next) in [
        (THROUGH, ON_EC2),
        (
            PAST,
            "add your network to spec.parameters.ssh.allowedCidrs, or use the VPN of the platform",
        ),
    ] {
        let found = checks(line, "EC2", ["True", "Reachable"], false);
        let connection = check(&found, "connection").unwrap();
        assert_eq!(connection["state"], "failed");
        assert_eq!(connection["next"], next);
    }
}
