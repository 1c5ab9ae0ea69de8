//! On-demand workspaces: their composed resources, and how these react when the claim, EC2 or a
//! person changes something.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;

use function_sdk_rust::proto::v1::{Ready, RunFunctionRequest, RunFunctionResponse};
use function_sdk_rust::resource::struct_to_json;
use serde_json::{Value, json};

use case::own_names::is_ssh_rule;
use case::{answer, resources};

const FIRST: &str = "instance-3df36833";
const SECOND: &str = "instance-c3d647f8";
const ATTACHMENT: &str = "home-attachment-efd39fce";

fn rendered(name: &str) -> BTreeMap<String, Value> {
    resources(&answer(&case::request(name)))
}

fn observed(request: &RunFunctionRequest) -> BTreeMap<String, Value> {
    let observed = request.observed.clone().unwrap_or_default();
    let composed = observed.resources.into_iter();
    composed
        .map(|(key, r)| (key, struct_to_json(&r.resource.unwrap())))
        .collect()
}

fn is_ready(response: &RunFunctionResponse) -> bool {
    let desired = response.desired.as_ref().unwrap();
    desired.composite.as_ref().unwrap().ready == Ready::True as i32
}

#[test]
fn an_instance_is_made_as_security_asks() {
    let instance = &rendered("on-demand-new")[FIRST]["spec"]["forProvider"];
    assert_eq!(instance["metadataOptions"]["httpTokens"], "required");
    assert_eq!(instance["metadataOptions"]["httpPutResponseHopLimit"], 1);
    assert_eq!(instance["rootBlockDevice"]["encrypted"], true);
    assert_eq!(instance["rootBlockDevice"]["volumeType"], "gp3");
    assert_eq!(instance["tags"]["owner"], "alice");
    let home = &rendered("on-demand-booting")["home"]["spec"]["forProvider"];
    assert_eq!(home["encrypted"], true);
    assert_eq!(home["type"], "gp3");
    assert_eq!(home["availabilityZone"], "us-east-1a");
}

/// An empty tag in the spec has provider-aws write all tags at every look.
#[test]
fn provider_aws_does_not_overwrite_what_the_agent_reports() {
    let started_with_an_empty_tag = json!({"observed": {"resources": {FIRST: {"resource": {
        "spec": {"initProvider": {"tags": {"gpu.platform.acme.io:activity": ""}}}
    }}}}});
    let observed = resources(&answer(&case::changed(
        "on-demand-ready",
        &started_with_an_empty_tag,
    )));
    for resources in [rendered("with-an-agent-and-a-home"), observed] {
        let of_instances = |(name, _): &(&String, &Value)| name.starts_with("instance-");
        let (_, instance) = resources.iter().find(of_instances).unwrap();
        let spec = &instance["spec"];
        let initial = spec["initProvider"]["tags"].as_object().unwrap();
        assert!(initial.contains_key("gpu.platform.acme.io:activity"));
        let kept = spec["forProvider"]["tags"].as_object().unwrap();
        for (tag, value) in initial.iter().chain(kept) {
            assert_ne!(value, "", "{tag}");
        }
    }
}

#[test]
fn only_networks_that_somebody_named_may_come_in() {
    let mut ingress: Vec<Value> = rendered("on-demand-new")
        .into_values()
        .filter(|r| r["spec"]["forProvider"]["type"] == "ingress")
        .map(|r| r["spec"]["forProvider"]["cidrBlocks"].clone())
        .collect();
    ingress.sort_by_key(Value::to_string);
    assert_eq!(
        ingress,
        [json!(["10.1.0.0/16"]), json!(["203.0.113.64/28"])]
    );

    let nobody = json!({
        "input": {"defaults": {"sshCidrs": []}},
        "observed": {"composite": {"resource": {"spec": {"parameters": {"ssh": null}}}}}
    });
    let closed = resources(&answer(&case::changed("on-demand-new", &nobody)));
    assert!(closed.keys().all(|key| !is_ssh_rule(key)), "{closed:?}");
    assert!(
        closed.contains_key("egress"),
        "cloud-init could not reach anything"
    );
}

#[test]
fn a_network_that_is_taken_away_loses_its_rule_and_no_other_does() {
    let narrowed = rendered("narrowed-networks");
    assert!(!narrowed.contains_key("ssh-203-0-113-64-28"));
    assert!(narrowed.contains_key("ssh-10-1-0-0-16"));
}

/// An instance that does not run is never Ready, even if EC2 or the provider reports otherwise. The
/// user would wait at an address that does not answer.
#[test]
fn an_instance_that_does_not_run_is_never_called_ready() {
    for name in [
        "on-demand-booting",
        "on-demand-attaching",
        "on-demand-terminated",
        "on-demand-stopped",
        "on-demand-without-quota",
        "on-demand-reborn",
        "on-demand-in-trouble-while-it-runs",
    ] {
        assert!(!is_ready(&answer(&case::request(name))), "{name}");
    }
    assert!(is_ready(&answer(&case::request("on-demand-ready"))));
    let status = case::status(&answer(&case::request("on-demand-terminated")));
    assert_eq!(status["phase"], "Interrupted");
    assert_eq!(
        status.get("ssh"),
        None,
        "the address may be somebody else's"
    );
}

#[test]
fn a_quota_is_named_with_the_code_to_ask_for() {
    let response = answer(&case::request("on-demand-without-quota"));
    let compute = case::condition(&response, "ComputeReady");
    assert_eq!(compute.reason, "Quota");
    let message = compute.message();
    assert!(message.contains("raise the quota L-DB2E81BA"), "{message}");
    assert!(!message.contains("RequestID"), "{message}");
    assert_eq!(case::status(&response)["phase"], "Failed");
}

/// If the user data of a running instance changed, EC2 would stop the instance, and terraform would
/// start it again.
#[test]
fn a_change_of_keys_does_not_touch_a_running_instance() {
    let before = rendered("on-demand-ready");
    let after = rendered("user-data-changed-and-kept");
    assert_eq!(before[FIRST], after[FIRST]);
    let response = answer(&case::request("user-data-changed-and-kept"));
    let resolved = case::condition(&response, "ConfigResolved");
    assert!(resolved.message().contains("replaceOnUserDataChange"));

    let rolled = rendered("user-data-changed-and-rolled");
    assert_eq!(before[FIRST]["spec"]["forProvider"]["userData"], {
        observed(&case::request("on-demand-ready"))[FIRST]["spec"]["forProvider"]["userData"]
            .clone()
    });
    let instances = rolled.keys().filter(|k| k.starts_with("instance-")).count();
    assert_eq!(
        instances, 2,
        "the first one serves until the second one does"
    );
}

#[test]
fn another_type_is_ready_before_the_first_machine_goes() {
    for name in [
        "replaced-type-begins",
        "replaced-type-booting",
        "replaced-type-refused",
    ] {
        let response = answer(&case::request(name));
        let resources = resources(&response);
        assert!(resources.contains_key(FIRST), "{name}");
        assert!(resources.contains_key(ATTACHMENT), "{name}");
        assert!(resources.contains_key(SECOND), "{name}");
        let status = case::status(&response);
        assert_eq!(status["ssh"], "ssh developer@198.51.100.17", "{name}");
        assert!(!is_ready(&response), "{name}: it is not what was asked for");
    }
}

/// EC2 refuses to attach a volume twice. A file system loses data if EC2 detaches its volume by
/// force.
#[test]
fn the_home_volume_moves_in_order() {
    let handing_over = rendered("replaced-type-hands-over");
    assert!(!handing_over.contains_key(ATTACHMENT));
    assert!(handing_over.contains_key(FIRST), "it is still attached");
    let detaching = rendered("replaced-type-detaching");
    assert!(detaching.contains_key(FIRST), "EC2 still detaches");
    let attachments = |resources: &BTreeMap<String, Value>| {
        resources
            .values()
            .filter(|r| r["kind"] == "VolumeAttachment")
            .map(|r| r["spec"]["forProvider"]["instanceId"].clone())
            .collect::<Vec<_>>()
    };
    assert!(attachments(&detaching).is_empty());
    let detached = rendered("replaced-type-detached");
    assert_eq!(attachments(&detached), [json!("i-0000000000000c0c00")]);
    assert!(!detached.contains_key(FIRST));
    let ttl = answer(&case::request("replaced-type-detaching"))
        .meta
        .unwrap()
        .ttl;
    assert_eq!(
        ttl.unwrap().seconds,
        10,
        "nothing calls when it is detached"
    );
}

/// The first instance is about to be deleted. If it got the home back, EC2 would soon detach the
/// home by force.
#[test]
fn a_home_that_was_handed_over_stays_when_the_second_instance_fails_for_a_moment() {
    let attached_to = "i-0000000000000c0c00";
    let (key, mut attachment) = rendered("replaced-type-detached")
        .into_iter()
        .find(|(_, resource)| resource["kind"] == "VolumeAttachment")
        .unwrap();
    attachment["metadata"]["annotations"] = json!({"crossplane.io/composition-resource-name": key});
    let failing = json!([
        {"type": "Ready", "status": "True", "reason": "Available",
            "lastTransitionTime": "2026-11-20T10:00:05Z"},
        {"type": "Synced", "status": "False", "reason": "ReconcileError",
            "message": "cannot describe the instance: RequestLimitExceeded",
            "lastTransitionTime": "2026-11-20T10:00:06Z"},
    ]);
    let change = json!({
        "observed": {"resources": {
            (key): {"resource": attachment},
            (SECOND): {"resource": {"status": {"conditions": failing}}},
        }},
        "requiredResources": {"attachments": {"items": [{"resource": attachment}]}},
    });
    let resources = resources(&answer(&case::changed("replaced-type-detached", &change)));
    let attached: Vec<_> = resources
        .values()
        .filter(|resource| resource["kind"] == "VolumeAttachment")
        .map(|resource| &resource["spec"]["forProvider"]["instanceId"])
        .collect();
    assert_eq!(attached, [attached_to]);
}

#[test]
fn until_crossplane_has_looked_for_attachments_none_is_made_and_no_instance_goes() {
    let unknown = json!({"requiredResources": {"attachments": null}});
    let response = answer(&case::changed("replaced-type-detached", &unknown));
    let resources = resources(&response);
    assert!(resources.contains_key(FIRST));
    assert!(resources.values().all(|r| r["kind"] != "VolumeAttachment"));
}

/// A home volume is the only resource that cannot be made again.
#[test]
fn no_request_whatsoever_drops_the_home_volume() {
    let mut with_home = 0;
    for name in case::names() {
        let request = case::request(&name);
        if !observed(&request).contains_key("home") {
            continue;
        }
        with_home += 1;
        let response = answer(&request);
        let kept = response
            .desired
            .as_ref()
            .is_some_and(|desired| desired.resources.contains_key("home"));
        assert!(kept, "{name}");
    }
    assert!(with_home > 15, "{with_home}");
}

#[test]
fn a_home_volume_that_is_kept_is_never_made_a_second_time() {
    let home = rendered("home-found-again")["home"].clone();
    assert_eq!(
        home["metadata"]["annotations"]["crossplane.io/external-name"],
        "vol-0000000000000a11c"
    );
    let may = |name: &str| rendered(name)["home"]["spec"]["managementPolicies"].clone();
    assert_eq!(
        may("on-demand-ready"),
        json!(["Observe", "Update", "LateInitialize"])
    );
    assert_eq!(
        may("on-demand-booting"),
        json!(["Observe", "Create", "Update", "LateInitialize"])
    );
    assert_eq!(may("home-deleted-with-its-claim"), json!(["*"]));
}

/// The user data of the first instance does not mention a home, and an instance reads its user data
/// only at its first boot.
#[test]
fn a_home_that_is_added_later_gets_an_instance_that_mounts_it() {
    let resources = rendered("home-added-later");
    assert!(resources.contains_key("instance-f39eb62b"), "it serves");
    let told = resources.values().find(|r| {
        let user_data = r["spec"]["forProvider"]["userData"].as_str();
        user_data.is_some_and(|text| text.contains("gpu-workspace-home"))
    });
    let place = &told.unwrap()["spec"]["forProvider"]["availabilityZone"];
    assert_eq!(
        place, "us-east-1a",
        "the home is made where the first one is"
    );
    assert!(resources.values().all(|r| r["kind"] != "VolumeAttachment"));
}

#[test]
fn a_home_grows_and_never_shrinks() {
    let size = |sizes: &Value| {
        let change = json!({"observed": {"composite": {"resource": {"spec": {"parameters": {
            "home": sizes
        }}}}}});
        resources(&answer(&case::changed("on-demand-ready", &change)))["home"]["spec"]
            ["forProvider"]["size"]
            .clone()
    };
    assert_eq!(size(&json!({"sizeGiB": 80})), 80);
    assert_eq!(size(&json!({"sizeGiB": 10})), 50);
    assert_eq!(size(&Value::Null), 50);
}

#[test]
fn another_market_is_ready_before_the_first_machine_goes() {
    assert!(rendered("spot-becomes-on-demand").contains_key("pool"));
    assert!(rendered("on-demand-becomes-spot").contains_key(FIRST));
    assert!(rendered("spot-type-replaced").contains_key("pool"));
}

/// Crossplane does not call functions when it deletes an XR. So the function composes the order of
/// deletion beforehand.
#[test]
fn deletion_goes_from_the_attachment_to_the_group() {
    let resources = rendered("on-demand-ready");
    let observed = observed(&case::request("on-demand-ready"));
    let name = |key: &str| observed[key]["metadata"]["name"].clone();
    for (of, by) in [
        ("home", ATTACHMENT),
        (FIRST, ATTACHMENT),
        ("security-group", FIRST),
    ] {
        let usage = &resources[&format!("usage-{of}-by-{by}")]["spec"];
        assert_eq!(usage["of"]["resourceRef"]["name"], name(of));
        assert_eq!(usage["by"]["resourceRef"]["name"], name(by));
        // Crossplane never forgets a refused deletion. It must not repeat that deletion when the
        // volume moves to another instance.
        let replays = usage.get("replayDeletion").is_some();
        assert_eq!(replays, of == "security-group");
    }
}

#[test]
fn holding_an_on_demand_workspace_changes_nothing_of_it() {
    let request = case::request("held-on-demand");
    let (held, observed) = (resources(&answer(&request)), observed(&request));
    assert_eq!(
        held.keys().collect::<Vec<_>>(),
        observed.keys().collect::<Vec<_>>()
    );
    for (key, resource) in held {
        assert_eq!(resource["spec"], observed[&key]["spec"], "{key}");
    }
}

/// EC2 detaches the disks of an instance by force when it terminates the instance.
#[test]
fn no_instance_goes_before_anybody_has_looked_what_is_attached_to_it() {
    let forgotten = json!({
        "observed": {
            "composite": {"resource": {
                "spec": {"parameters": {"instanceType": "g5.xlarge"}},
                "status": {"home": null, "instanceId": null}
            }},
            "resources": {"home": null, (ATTACHMENT): null}
        },
        "requiredResources": {"attachments": null}
    });
    let request = case::changed("on-demand-booting", &forgotten);
    assert!(resources(&answer(&request)).contains_key(FIRST));
    let looked = json!({"requiredResources": {"attachments": {"items": []}}});
    let mut request = case::changed("on-demand-booting", &forgotten);
    request.required_resources = case::changed("on-demand-booting", &looked).required_resources;
    assert!(!resources(&answer(&request)).contains_key(FIRST));
}

#[test]
fn an_attachment_that_somebody_edited_is_no_reason_to_begin_another() {
    let edited = json!({"observed": {"resources": {(ATTACHMENT): {"resource": {
        "spec": {"forProvider": {"instanceId": "i-0000000000000c0c00"}}
    }}}}});
    // Crossplane fetched the attachment before it was edited, or not at all.
    let before = case::changed("replaced-type-hands-over", &edited);
    let mut unknown = before.clone();
    unknown.required_resources.remove("attachments").unwrap();
    for request in [before, unknown] {
        let observed = observed(&request);
        let desired = resources(&answer(&request));
        let begun = desired.keys().find(|key| {
            key.starts_with("home-attachment-") && !observed.contains_key(key.as_str())
        });
        assert_eq!(begun, None);
    }
}

#[test]
fn without_the_recorded_machine_the_one_that_has_the_home_keeps_it() {
    let gone = json!({
        "observed": {
            "composite": {"resource": {
                "spec": {"parameters": {"instanceType": "g4dn.2xlarge"}},
                "status": {"instanceId": "i-1"}
            }}
        },
        "input": {"allowedInstanceTypes": ["g4dn.*", "g5.*"]}
    });
    let request = case::changed("replaced-type-hands-over", &gone);
    let desired = resources(&answer(&request));
    assert!(desired.contains_key(FIRST) && desired.contains_key(ATTACHMENT));
}

#[test]
fn a_forgotten_attachment_does_not_take_the_home_from_the_machine_that_serves() {
    let forgotten = json!({"requiredResources": {"attachments": {"items": [{"resource": {
        "apiVersion": "ec2.aws.m.upbound.io/v1beta1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "forgotten"},
        "spec": {"forProvider": {"instanceId": "i-0000000000000c0c00"}}
    }}]}}});
    let request = case::changed("replaced-type-booting", &forgotten);
    assert!(resources(&answer(&request)).contains_key(ATTACHMENT));
}
