//! Certificate authorities of the platform team: a certificate opens the workspaces of its principal,
//! and nobody else names an authority.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;

use function_sdk_rust::proto::v1::RunFunctionResponse;
use serde_json::{Value, json};

use case::answer;

const AUTHORITY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAuthorityAuthorityAuthorityAuthorityAuthori ca";
/// A key that its owner would like to be an authority.
const OWN: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOwnOwnOwnOwnOwnOwnOwnOwnOwnOwnOwnOwnOwnOwnO";
/// The cases of each placement and provider, with a version that composes it.
const PLACED: [(&str, &str); 6] = [
    ("cluster-ready", "v1"),
    ("cluster-ready", "v3"),
    ("ready", "v1"),
    ("ready", "v3"),
    ("on-demand-new", "v2"),
    ("v3-on-demand-new", "v3"),
];

fn request(name: &str, version: &str, authorities: &Value) -> Value {
    let mut request = case::request_json(name);
    let change = json!({
        "input": {"behaviourVersion": version, "ssh": {"userAuthorities": authorities}},
    });
    case::merge(&mut request, &change);
    request
}

fn with_parameters(mut request: Value, parameters: &Value) -> Value {
    let resource = json!({"spec": {"parameters": parameters}});
    let change = json!({"observed": {"composite": {"resource": resource}}});
    case::merge(&mut request, &change);
    request
}

/// The file that sshd of a machine reads from behaviour version v3 on.
const KEY_FILE: &str = "/etc/gpu-workspace/keys/developer";

/// The lines with options that sshd reads: in the pods' file, or in the user data of a machine.
fn lines_with_options(resources: &BTreeMap<String, Value>) -> Vec<String> {
    let in_pods = resources.get("cluster-authorized-keys");
    let in_pods = in_pods.and_then(|map| map["data"]["authorized_keys"].as_str());
    let documents = resources
        .values()
        .filter_map(|object| object.pointer("/spec/forProvider/userData")?.as_str());
    let lines = documents.flat_map(of_machine);
    let lines = lines.chain(in_pods.into_iter().flat_map(str::lines).map(str::to_owned));
    lines.filter(|line| !line.starts_with("ssh-")).collect()
}

fn of_machine(user_data: &str) -> Vec<String> {
    let config: Value = serde_yaml::from_str(user_data).unwrap();
    let keys = config["users"][0]["ssh_authorized_keys"].as_array();
    let keys = keys.into_iter().flatten().filter_map(Value::as_str);
    let files = config["write_files"].as_array().into_iter().flatten();
    let files = files.filter(|file| file["path"] == KEY_FILE);
    let in_files = files.flat_map(|file| file["content"].as_str().unwrap().lines());
    keys.chain(in_files).map(str::to_owned).collect()
}

fn written(request: Value) -> Vec<String> {
    lines_with_options(&case::resources(&answer(&case::parse(request))))
}

#[test]
fn a_certificate_for_the_owner_opens_the_workspace_wherever_it_runs() {
    for (name, version) in PLACED {
        let line = format!("cert-authority,principals=\"alice\" {AUTHORITY}");
        let found = written(request(name, version, &json!([AUTHORITY])));
        assert_eq!(found, [line], "{name} {version}");
        assert!(written(request(name, version, &json!([]))).is_empty());
    }
}

/// While a certificate authority changes, certificates of both are in use.
#[test]
fn two_authorities_are_two_lines() {
    let next = AUTHORITY.replace(" ca", " next");
    for (name, version) in PLACED {
        let found = written(request(name, version, &json!([AUTHORITY, next])));
        let expected =
            [AUTHORITY, &next].map(|key| format!("cert-authority,principals=\"alice\" {key}"));
        assert_eq!(found, expected, "{name} {version}");
    }
}

#[test]
fn no_claim_names_an_authority() {
    let data = OWN.split(' ').nth(1).unwrap();
    let fields = json!({
        "userAuthorities": [OWN],
        "ssh": {"userAuthorities": [OWN], "authorities": [OWN]},
    });
    let keys = [
        format!("cert-authority {OWN}"),
        format!("cert-authority,principals=\"alice\" {OWN}"),
        format!("{OWN}\ncert-authority {OWN}"),
        format!("{OWN}\rcert-authority {OWN}"),
        format!("{OWN} laptop\n@cert-authority * {OWN}"),
        format!("{OWN} cert-authority {OWN}"),
        format!("ssh-ed25519-cert-v01@openssh.com {data}"),
    ];
    for (name, version) in PLACED {
        let own = |parameters: &Value| {
            let request = request(name, version, &json!([AUTHORITY]));
            let response = answer(&case::parse(with_parameters(request, parameters)));
            let is_own = |line: &String| line.contains(data);
            let lines = lines_with_options(&case::resources(&response));
            assert!(!lines.iter().any(is_own), "{name} {version}: {lines:?}");
            response
        };
        own(&fields);
        for key in &keys {
            let response = own(&json!({"ssh": {"publicKeys": [key]}}));
            let config = case::condition(&response, "ConfigResolved");
            assert_eq!(config.reason, "ParametersInvalid", "{name}: {key:?}");
            let path = "spec.parameters.ssh.publicKeys[0]: ";
            assert!(config.message().starts_with(path), "{config:?}");
        }
    }
}

/// The owner's name comes from the claim, the label of its Namespace, or the last status. A quote or
/// a comma in it would name another principal.
#[test]
fn no_name_of_an_owner_leaves_its_quotes() {
    let hostile = [
        "bob\"",
        "alice,bob",
        "alice\",no-pty",
        "alice\" ssh-ed25519 AAAA\ncert-authority",
        "*",
        "!alice",
        "alice\\",
        "alice ",
        "Alice",
        "аlice",
        "alice\u{0}",
    ];
    let placed = PLACED.map(|(name, version)| (name, request(name, version, &json!([AUTHORITY]))));
    for (name, request) in placed {
        for owner in hostile {
            let in_claim = with_parameters(request.clone(), &json!({"owner": owner}));
            let mut in_status = with_parameters(request.clone(), &json!({"owner": null}));
            let status = json!({"status": {"owner": owner}});
            case::merge(
                &mut in_status,
                &json!({"observed": {"composite": {"resource": status}}}),
            );
            let mut in_label = in_status.clone();
            case::merge(&mut in_label, &of_namespace(owner));
            for request in [in_claim, in_status, in_label] {
                let response = answer(&case::parse(request));
                assert_is_refused(&response, &format!("{name} {owner:?}"));
            }
        }
    }
}

/// A policy that binds owners to their Namespace, and a Namespace with this owner in its label.
fn of_namespace(owner: &str) -> Value {
    let label = "platform.acme.io/owner";
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team-vision", "labels": {label: owner}},
    });
    json!({
        "input": {"ownerBinding": {"namespaceLabel": label}},
        "requiredResources": {"namespace": {"items": [{"resource": namespace}]}},
    })
}

/// What was composed before stays, and has no line of an authority.
fn assert_is_refused(response: &RunFunctionResponse, said: &str) {
    let lines = lines_with_options(&case::resources(response));
    assert!(lines.is_empty(), "{said}: {lines:?}");
    let config = case::condition(response, "ConfigResolved");
    assert_eq!(config.reason, "ParametersInvalid", "{said}: {config:?}");
    let owner = "spec.parameters.owner: ";
    assert!(config.message().starts_with(owner), "{said}: {config:?}");
}
