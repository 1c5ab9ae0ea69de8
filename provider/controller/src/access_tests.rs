use api::managed::{ProviderConfigKind, ProviderConfigReference};
use provider_core::ErrorClass;
use serde_json::{Value, json};

use super::*;

const TOKEN_ROLE: &str = "arn:aws:iam::123456789012:role/pools";

/// A configuration of a namespace, or of the cluster.
pub(super) fn config(namespace: Option<&str>, spec: Value) -> Config {
    let name = |kind| {
        let name = "own".to_owned();
        (&ProviderConfigReference { kind, name }).into()
    };
    match namespace {
        Some(namespace) => Config::of_namespace(
            name(ProviderConfigKind::ProviderConfig),
            namespace.to_owned(),
            serde_json::from_value(spec).unwrap(),
        ),
        None => Config::of_cluster(
            name(ProviderConfigKind::ClusterProviderConfig),
            serde_json::from_value(spec).unwrap(),
        ),
    }
}

/// What the flags permit in these tests.
fn rights(identity: bool, endpoints: &[&str]) -> Rights {
    let endpoints = endpoints.iter().map(|url| Address::listed(url).unwrap());
    Rights {
        identity,
        endpoints: endpoints.collect(),
    }
}

/// Every way to ask for the identity of the provider's pod, with the field that does.
fn identities_of_pod() -> [(Value, &'static str); 4] {
    let file = json!({"source": "Filesystem", "fs": {"path": "/var/run/token"}});
    let place = "spec.credentials.webIdentity.tokenConfig";
    [
        (json!({"source": "IRSA"}), "spec.credentials.source"),
        (json!({"source": "PodIdentity"}), "spec.credentials.source"),
        (by_token(&file), place),
        (by_token(&Value::Null), place),
    ]
}

fn by_token(place: &Value) -> Value {
    json!({"source": "WebIdentity", "webIdentity": {"roleARN": TOKEN_ROLE, "tokenConfig": place}})
}

fn endpoint() -> Value {
    json!({"url": {"type": "Static", "static": "https://vpce.example.org"}})
}

fn secret(namespace: &str) -> Value {
    json!({"namespace": namespace, "name": "aws", "key": "token"})
}

fn error(operation: &'static str, code: &str, class: ErrorClass) -> provider_aws::Ec2Error {
    provider_aws::Ec2Error {
        operation,
        code: code.into(),
        message: "Said by AWS.".into(),
        class,
    }
}

#[test]
fn only_a_flag_lets_a_team_use_the_providers_identity() {
    for (credentials, field) in identities_of_pod() {
        let chain = json!([{"roleARN": TOKEN_ROLE}]);
        let spec = json!({"credentials": credentials, "assumeRoleChain": chain});
        let team = config(Some("team"), spec.clone());
        let refused = team.check(&rights(false, &[])).unwrap_err().to_string();
        let said = format!("ProviderConfig \"own\": {field}: ");
        assert!(refused.starts_with(&said), "{refused}");
        for part in ["--namespaced-identity", "ClusterProviderConfig", "Secret"] {
            assert!(refused.contains(part), "{part:?} is not in {refused:?}");
        }
        team.check(&rights(true, &[])).unwrap();
        config(None, spec).check(&rights(false, &[])).unwrap();
    }
}

#[test]
fn a_team_needs_no_flag_for_credentials_of_its_own() {
    let token = by_token(&json!({"source": "Secret", "secretRef": secret("team")}));
    let keys = json!({"source": "Secret", "secretRef": secret("team")});
    for credentials in [token, keys] {
        let own = config(Some("team"), json!({"credentials": credentials}));
        own.check(&rights(false, &[])).unwrap();
    }
}

#[test]
fn a_team_reaches_only_listed_servers() {
    let keys = json!({"source": "Secret", "secretRef": secret("team")});
    for credentials in [json!({"source": "None"}), keys] {
        let spec = json!({"credentials": credentials, "endpoint": endpoint()});
        let team = config(Some("team"), spec.clone());
        for listed in [&[][..], &["https://vpce.example.org:8443"]] {
            let refused = team.check(&rights(true, listed)).unwrap_err().to_string();
            let said = "ProviderConfig \"own\": spec.endpoint.url.static: ";
            assert!(refused.starts_with(said), "{refused}");
            for part in ["--allowed-endpoints", "ClusterProviderConfig"] {
                assert!(refused.contains(part), "{part:?} is not in {refused:?}");
            }
        }
        let listed = ["http://127.0.0.1:4566", "https://vpce.example.org"];
        team.check(&rights(false, &listed)).unwrap();
        config(None, spec).check(&rights(false, &[])).unwrap();
    }
}

#[test]
fn a_server_that_is_listed_gets_no_token_of_the_provider() {
    let listed = rights(true, &["https://vpce.example.org"]);
    for (credentials, _) in identities_of_pod() {
        let is_agents = credentials["source"] == "PodIdentity";
        let spec = json!({"credentials": credentials, "endpoint": endpoint()});
        let checked = config(Some("team"), spec.clone()).check(&listed);
        assert_eq!(checked.is_ok(), is_agents, "{credentials}");
        config(None, spec).check(&listed).unwrap();
    }
    let own = by_token(&json!({"source": "Secret", "secretRef": secret("team")}));
    let spec = json!({"credentials": own, "endpoint": endpoint()});
    config(Some("team"), spec).check(&listed).unwrap();
}

#[test]
fn a_team_reads_no_queue_and_is_told_so() {
    let spec = json!({
        "credentials": {"source": "Secret", "secretRef": secret("team")},
        "eventQueues": {"us-east-1": "https://sqs.example.org/queue"},
    });
    let team = config(Some("team"), spec.clone());
    assert!(team.queues.is_empty());
    team.check(&Rights::default())
        .expect("the pools of a configuration with an old queue work");
    assert_eq!(config(None, spec.clone()).queues.len(), 1);

    let meta = json!({"name": "own", "namespace": "team"});
    let object = |spec: &Value| serde_json::from_value(json!({"metadata": meta, "spec": spec}));
    let said = not_permitted(&object(&spec).unwrap(), &Rights::default()).unwrap();
    let begins = "ProviderConfig \"own\": spec.eventQueues: is ignored";
    assert!(said.starts_with(begins), "{said}");
    assert!(said.contains("ClusterProviderConfig"), "{said}");
    let plain = json!({"credentials": spec["credentials"]});
    let plain = object(&plain).unwrap();
    assert_eq!(not_permitted(&plain, &Rights::default()), None);
}

#[test]
fn a_team_cannot_use_a_token_of_another_team() {
    let place = json!({"source": "Secret", "secretRef": secret("others")});
    let spec = json!({"credentials": by_token(&place)});
    let refused = config(Some("team"), spec.clone()).secret().unwrap_err();
    let said =
        "ProviderConfig \"own\": spec.credentials.webIdentity.tokenConfig.secretRef.namespace";
    assert!(refused.to_string().starts_with(said), "{refused}");
    assert!(config(None, spec).secret().unwrap().is_some());
}

#[test]
fn nothing_unsigned_is_sent_to_aws() {
    let spec = json!({"credentials": {"source": "None"}});
    let refused = config(None, spec).check(&Rights::default()).unwrap_err();
    assert!(refused.to_string().contains("spec.endpoint"), "{refused}");
    let spec = json!({"credentials": {"source": "None"}, "endpoint": endpoint()});
    config(None, spec).check(&Rights::default()).unwrap();
}

#[test]
fn a_pod_without_an_identity_is_named_with_the_configuration_that_wants_it() {
    for source in ["IRSA", "PodIdentity"] {
        let config = config(None, json!({"credentials": {"source": source}}));
        let refused = credentials(&config, None, |_| None).unwrap_err();
        let said = format!("ClusterProviderConfig \"own\": source is {source}, and");
        assert!(refused.to_string().starts_with(&said), "{refused}");
    }
}

#[test]
fn another_chain_of_roles_is_another_access() {
    let chain = |external: &str| {
        let role = json!({"roleARN": TOKEN_ROLE, "externalID": external});
        let spec = json!({"credentials": {"source": "IRSA"}, "assumeRoleChain": [role]});
        config(None, spec).describe()
    };
    assert_eq!(chain("a"), chain("a"));
    assert_ne!(chain("a"), chain("b"));
}

#[test]
fn a_denial_says_where_to_mend_it() {
    let keys = json!({"credentials": {"source": "Secret", "secretRef": secret("team")}});
    let place = json!({"source": "Secret", "secretRef": secret("team")});
    let token = json!({"credentials": by_token(&place)});
    let pod = json!({"credentials": {"source": "IRSA"}});
    for (spec, operation, code, next_step) in [
        (
            &keys,
            "DescribeInstances",
            "ExpiredToken",
            "fresh keys into Secret team/aws, key \"token\"",
        ),
        (
            &keys,
            "DescribeInstances",
            "AuthFailure",
            "fresh keys into Secret team/aws",
        ),
        (
            &keys,
            "TerminateInstances",
            "UnauthorizedOperation",
            "ec2:TerminateInstances",
        ),
        (&keys, "AssumeRole", "AccessDenied", "trust policy"),
        (
            &token,
            "AssumeRoleWithWebIdentity",
            "ExpiredTokenException",
            "put a fresh token into Secret team/aws",
        ),
        (
            &token,
            "AssumeRoleWithWebIdentity",
            "InvalidIdentityToken",
            "issuer",
        ),
        (&pod, "DescribeInstances", "ExpiredToken", "clock"),
        (&pod, "CreateFleet", "PendingVerification", "account"),
    ] {
        let origin = Origin::of(&config(Some("team"), spec.clone()));
        let said = origin.explain(&error(operation, code, ErrorClass::Denied));
        for part in [
            operation,
            code,
            "Said by AWS.",
            "ProviderConfig \"own\": ",
            next_step,
        ] {
            assert!(said.contains(part), "{part:?} is not in {said:?}");
        }
    }
}

#[test]
fn an_error_of_another_kind_does_not_blame_the_credentials() {
    let origin = Origin::of(&config(None, json!({"credentials": {"source": "IRSA"}})));
    let said = origin.explain(&error(
        "DescribeImages",
        "InternalError",
        ErrorClass::Transient,
    ));
    assert_eq!(said, "DescribeImages: InternalError: Said by AWS.");
}
