//! The conditions under which a workspace is ready.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use function_sdk_rust::proto::v1::{Ready, Status};
use serde_json::{Value, json};

use case::answer;
use case::own_names::is_ssh_rule;

#[test]
fn a_workspace_is_ready_when_its_pool_is_in_order_and_its_instance_has_an_address() {
    let response = answer(&case::request("becoming-ready"));
    assert_eq!(
        case::readiness(&response),
        (Ready::True as i32, Ready::True as i32)
    );
    assert_eq!(
        case::condition(&response, "ComputeReady").status,
        Status::ConditionTrue as i32
    );
}

#[test]
fn a_workspace_without_any_one_of_these_is_not_ready() {
    let instance = |change: Value| {
        let mut instance = json!({
            "id": "i-1", "launch": 1, "instanceType": "g4dn.xlarge",
            "zone": "us-east-1a", "capacityType": "Spot", "imageId": "ami-1",
            "state": "running", "publicIp": "198.51.100.17"
        });
        let entries = instance.as_object_mut().unwrap();
        entries.extend(change.as_object().unwrap().clone());
        entries.retain(|_, value| !value.is_null());
        json!({"status": {"atProvider": {"instances": [instance]}}})
    };
    let name = "becoming-ready";
    let cases = [
        (
            "Ready is False",
            case::with_conditions(
                name,
                &[("Synced", "True", "S", ""), ("Ready", "False", "C", "")],
            ),
        ),
        (
            "Ready is Unknown",
            case::with_conditions(
                name,
                &[("Synced", "True", "S", ""), ("Ready", "Unknown", "C", "")],
            ),
        ),
        (
            "Ready is missing",
            case::with_conditions(name, &[("Synced", "True", "S", "")]),
        ),
        (
            "Synced is False",
            case::with_conditions(
                name,
                &[("Synced", "False", "E", "m"), ("Ready", "True", "A", "")],
            ),
        ),
        (
            "Synced is missing",
            case::with_conditions(name, &[("Ready", "True", "A", "")]),
        ),
        (
            "pending",
            case::with_pool(name, &instance(json!({"state": "pending"}))),
        ),
        (
            "stopping",
            case::with_pool(name, &instance(json!({"state": "stopping"}))),
        ),
        (
            "no address",
            case::with_pool(name, &instance(json!({"publicIp": null}))),
        ),
        (
            "an address that is none",
            case::with_pool(name, &instance(json!({"publicIp": "1".repeat(30_000)}))),
        ),
        (
            "no instance",
            case::with_pool(name, &json!({"status": {"atProvider": {"instances": []}}})),
        ),
        (
            "being deleted",
            case::with_pool(
                name,
                &json!({"metadata": {"deletionTimestamp": "2026-11-20T12:00:00Z"}}),
            ),
        ),
        ("no status", case::with_pool(name, &json!({"status": null}))),
        (
            "unreadable status",
            case::with_pool(name, &json!({"status": {"conditions": "none"}})),
        ),
    ];
    for (what, response) in cases {
        assert_eq!(
            case::readiness(&response),
            (Ready::False as i32, Ready::False as i32),
            "{what}"
        );
        let compute = case::condition(&response, "ComputeReady");
        assert_eq!(compute.status, Status::ConditionFalse as i32, "{what}");
        assert!(compute.message.is_some(), "{what}");
    }
}
/// Another step may desire resources after this one, and Crossplane may still have to find out a
/// readiness. The function must not overrule either.
#[test]
fn a_ready_workspace_does_not_declare_other_steps_resources_ready() {
    let response = answer(&case::request("earlier-steps"));
    let desired = response.desired.unwrap();
    assert_eq!(desired.resources["pool"].ready, Ready::True as i32);
    assert_eq!(desired.resources["bucket"].ready, Ready::Unspecified as i32);
    assert_eq!(desired.composite.unwrap().ready, Ready::Unspecified as i32);
}

/// Crossplane reports an XR without composed resources as ready.
#[test]
fn a_workspace_that_waits_for_its_catalogue_is_not_ready() {
    for name in [
        "first-call",
        "catalogue-missing",
        "catalogue-invalid",
        "image-missing",
    ] {
        let response = answer(&case::request(name));
        assert_eq!(case::pool(&response), None, "{name}");
        let composite = response.desired.unwrap().composite.unwrap();
        assert_eq!(composite.ready, Ready::False as i32, "{name}");
    }
}

#[test]
fn a_step_that_calls_the_workspace_not_ready_is_not_overruled() {
    let earlier = json!({"desired": {"composite": {"ready": "READY_FALSE"}}});
    let response = answer(&case::changed("ready", &earlier));
    assert_eq!(
        case::readiness(&response),
        (Ready::True as i32, Ready::False as i32)
    );
}

/// EC2 deletes a security group's rules with the group. The provider could never reconcile rules
/// that stay, and the workspace would never be Ready.
#[test]
fn rules_whose_security_group_is_gone_keep_no_workspace_from_ready() {
    let rules = |request: Value| {
        let desired = answer(&case::parse(request)).desired.unwrap();
        let is_rule = |key: &&String| *key == "egress" || is_ssh_rule(key);
        desired.resources.keys().filter(is_rule).count()
    };
    for name in ["on-demand-ready", "on-demand-becomes-spot"] {
        let mut request = case::request_json(name);
        assert_ne!(rules(request.clone()), 0, "{name}");
        let networks = "/requiredResources/catalogue/items/0/resource/data";
        request.pointer_mut(networks).unwrap()["networks"] =
            json!({"us-east-1": {"securityGroupIds": ["sg-00000000000000001"]}});
        let observed = request.pointer_mut("/observed/resources").unwrap();
        let observed = observed.as_object_mut().unwrap();
        observed.retain(|key, _| !key.contains("security-group"));
        assert_eq!(rules(request), 0, "{name}");
    }
}

/// A machine has an address minutes before its owner can import a package.
#[test]
fn a_workspace_is_ready_only_once_its_software_is_installed() {
    let not_ready = [
        (
            "v3-software-installs",
            Status::ConditionFalse,
            "SettingUp",
            "Provisioning",
        ),
        (
            "v3-software-fails",
            Status::ConditionFalse,
            "SetupFailed",
            "Failed",
        ),
        (
            "v3-software-silent",
            Status::ConditionUnknown,
            "SetupUnknown",
            "Provisioning",
        ),
    ];
    for (name, status, reason, phase) in not_ready {
        let response = answer(&case::request(name));
        let software = case::condition(&response, "SoftwareReady");
        assert_eq!(
            (software.status, &*software.reason),
            (status as i32, reason),
            "{name}"
        );
        let said = case::status(&response);
        assert_eq!(said["phase"], phase, "{name}");
        assert_eq!(said["message"], software.message(), "{name}");
        assert_eq!(
            case::readiness(&response),
            (Ready::True as i32, Ready::False as i32),
            "{name}"
        );
        let ready = response
            .results
            .iter()
            .any(|r| r.reason() == "WorkspaceReady");
        assert!(!ready, "{name}");
    }
    let response = answer(&case::request("v3-software-ready"));
    assert_eq!(case::readiness(&response).1, Ready::True as i32);
    assert_eq!(case::status(&response)["phase"], "Ready");
}

/// The owner mends a failed setup on the machine itself.
#[test]
fn the_owner_reads_the_way_in_and_the_host_keys_while_the_setup_goes_on_or_fails() {
    for name in ["v3-software-installs", "v3-software-fails"] {
        let status = case::status(&answer(&case::request(name)));
        assert_eq!(status["ssh"], "ssh developer@198.51.100.17", "{name}");
        let keys = status["hostKeys"].as_array().unwrap();
        assert_eq!(keys.len(), 1, "{name}");
    }
}

#[test]
fn a_failed_setup_names_the_step_the_field_and_the_log() {
    let response = answer(&case::request("v3-software-fails"));
    let message = case::condition(&response, "SoftwareReady")
        .message()
        .to_owned();
    for part in [
        "install OpenCV",
        "spec.parameters.opencvVersion",
        "/var/log/gpu-workspace-setup.log",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let failed = response
        .results
        .iter()
        .find(|r| r.reason() == "WorkspaceFailed");
    assert_eq!(failed.unwrap().message, message);
}

/// Consoles forget, and an earlier version of the function read none.
#[test]
fn a_machine_that_was_ready_stays_ready_when_its_console_tells_nothing() {
    let name = "v3-software-of-an-earlier-machine";
    let response = answer(&case::request(name));
    assert_eq!(case::readiness(&response).1, Ready::True as i32);
    let again = answer(&case::after(name, &response));
    assert_eq!(case::readiness(&again).1, Ready::True as i32);
    let other = json!({"observed": {"composite": {"resource": {"status": {
        "instanceId": "i-00000000000000b0b0"
    }}}}});
    let other = answer(&case::changed(name, &other));
    assert_eq!(
        case::readiness(&other).1,
        Ready::False as i32,
        "another machine"
    );
}

#[test]
fn a_workspace_that_does_not_run_has_no_software() {
    let installed = json!({"type": "SoftwareReady", "status": "True", "reason": "Installed"});
    let stopped = json!({"observed": {"composite": {"resource": {
        "spec": {"parameters": {"lifecycle": {"state": "Stopped"}}},
        "status": {"conditions": [installed]}
    }}}});
    let response = answer(&case::changed("v3-software-ready", &stopped));
    let software = case::condition(&response, "SoftwareReady");
    assert_eq!(software.reason, "NotRunning");
    assert_eq!(software.status, Status::ConditionFalse as i32);
}

/// provider-aws reads no console. The agent of an on-demand instance reports by a tag.
#[test]
fn an_on_demand_workspace_is_ready_once_its_agent_reports_the_software() {
    let tag = "gpu.platform.acme.io:setup";
    let told = |said: &str| {
        let instance = json!({
            "spec": {"initProvider": {"tags": {tag: ""}}},
            "status": {"atProvider": {"tagsAll": {tag: said}}},
        });
        let name = "on-demand-ready";
        let mut request = json!({
            "input": {"behaviourVersion": "v3"},
            "observed": {"resources": {"instance-3df36833": {"resource": instance}}}
        });
        request["observed"]["composite"] =
            json!({"resource": {"status": {"phase": "Provisioning"}}});
        answer(&case::changed(name, &request))
    };
    let reason = |said: &str| {
        let response = told(said);
        let ready = response
            .desired
            .as_ref()
            .unwrap()
            .composite
            .as_ref()
            .unwrap()
            .ready;
        (
            case::condition(&response, "SoftwareReady").reason.clone(),
            ready,
        )
    };
    let no = Ready::False as i32;
    assert_eq!(reason(""), ("SettingUp".to_owned(), no));
    assert_eq!(reason("anything"), ("SettingUp".to_owned(), no));
    assert_eq!(
        reason("FAILED: verify (exit 1), see x"),
        ("SetupFailed".to_owned(), no)
    );
    assert_eq!(reason("done"), ("Installed".to_owned(), Ready::True as i32));
}

#[test]
fn an_interruption_while_something_else_is_not_in_order_is_told_once() {
    let installs = case::request_json("v3-software-installs");
    let mut replaces = installs.clone();
    let done = json!({"state": "Ready"});
    let pool = &mut replaces["observed"]["resources"]["pool"]["resource"];
    pool["status"]["atProvider"]["instances"][0]["setup"] = done;
    // Without a policy, everything stays as observed, also the pool that is being deleted.
    replaces["input"] = Value::Null;
    let resources = &mut replaces["observed"]["resources"];
    resources["pool-00000000"] = resources["pool"].clone();
    let other = &mut resources["pool-00000000"]["resource"];
    other["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:05Z");
    other["status"] = json!({});
    for mut request in [installs, replaces] {
        let pool = &mut request["observed"]["resources"]["pool"]["resource"];
        pool["status"]["atProvider"]["instances"][0]["notice"] =
            json!({"kind": "Interruption", "at": "2026-11-20T11:00:00Z"});
        let warnings = |request: &Value| {
            let response = answer(&case::parse(request.clone()));
            let results = response.results.iter();
            let told = results.filter(|one| one.reason() == "InterruptionWarning");
            (told.count(), response)
        };
        let (told, response) = warnings(&request);
        assert_eq!(told, 1);
        let mut status = case::status(&response);
        assert_ne!(status["phase"], "Ready");
        status["conditions"] = case::conditions(&response);
        request["observed"]["composite"]["resource"]["status"] = status;
        assert_eq!(warnings(&request).0, 0, "told at every call");
    }
}
