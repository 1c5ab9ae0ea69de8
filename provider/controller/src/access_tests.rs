use api::managed::{ProviderConfigKind, ProviderConfigReference};
use provider_core::ErrorClass;
use serde_json::{Value, json};

use super::*;

const TOKEN_ROLE: &str = "arn:aws:iam::123456789012:role/pools";

pub(super) fn config(namespace: Option<&str>, spec: Value) -> Config {
    let spec: api::provider_config::ProviderConfigSpec = serde_json::from_value(spec).unwrap();
    let kind = match namespace {
        Some(_) => ProviderConfigKind::ProviderConfig,
        None => ProviderConfigKind::ClusterProviderConfig,
    };
    let name = "own".to_owned();
    Config {
        name: (&ProviderConfigReference { kind, name }).into(),
        namespace: namespace.map(ToOwned::to_owned),
        credentials: spec.credentials,
        roles: spec.assume_role_chain,
        endpoint: spec.endpoint,
        queues: spec.event_queues,
    }
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
fn a_team_cannot_have_the_providers_own_token_sent_to_itself() {
    let file = json!({"source": "Filesystem", "fs": {"path": "/var/run/token"}});
    for credentials in [
        json!({"source": "IRSA"}),
        by_token(&file),
        by_token(&Value::Null),
    ] {
        let spec = json!({"credentials": credentials, "endpoint": endpoint()});
        let refused = config(Some("team"), spec.clone()).check().unwrap_err();
        assert!(refused.to_string().contains("spec.endpoint"), "{refused}");
        config(None, spec).check().unwrap();
        config(Some("team"), json!({"credentials": credentials}))
            .check()
            .unwrap();
    }
    let own = by_token(&json!({"source": "Secret", "secretRef": secret("team")}));
    let spec = json!({"credentials": own, "endpoint": endpoint()});
    config(Some("team"), spec).check().unwrap();
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
    let refused = config(None, spec).check().unwrap_err();
    assert!(refused.to_string().contains("spec.endpoint"), "{refused}");
    let spec = json!({"credentials": {"source": "None"}, "endpoint": endpoint()});
    config(None, spec).check().unwrap();
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
