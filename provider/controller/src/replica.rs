//! The name of this process among those that want to lead.

use std::fs;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use provider_runtime::leader::Replica;
use serde_json::Value;

/// The `ServiceAccount` token that Kubernetes gives to each pod.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// This process. Its pod is unknown outside of Kubernetes.
pub fn this_process() -> Replica {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let token = fs::read_to_string(TOKEN).unwrap_or_default();
    Replica::new(&host, pod_of(&token), fastrand::u64(..))
}

/// The UID of the pod that a token was made for ("Bound service account tokens", Kubernetes). A host
/// name would not do: with `hostNetwork`, all pods of a node have the node's.
fn pod_of(token: &str) -> Option<String> {
    let claims = token.split('.').nth(1)?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let uid = claims["kubernetes.io"]["pod"]["uid"].as_str()?;
    Some(uid.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_is_read_from_a_token_of_kubernetes_and_from_nothing_else() {
        let claims = r#"{"kubernetes.io": {"pod": {"name": "p", "uid": "uid-of-p"}}}"#;
        let claims = BASE64_URL_SAFE_NO_PAD.encode(claims);
        let token = format!("e30.{claims}.signature");
        assert_eq!(pod_of(&token).as_deref(), Some("uid-of-p"));
        for other in ["", "token", "a.b.c", "e30.e30.e30"] {
            assert_eq!(pod_of(other), None, "{other}");
        }
    }
}
