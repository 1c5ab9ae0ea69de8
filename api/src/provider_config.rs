//! Where the provider finds AWS: credentials, endpoint, and who uses them.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::managed::{ProviderConfigReference, ProviderConfigStatus, ResourceReference};

/// AWS access for the `SpotPool`s of one namespace.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "ProviderConfig",
    plural = "providerconfigs",
    namespaced,
    status = "ProviderConfigStatus",
    category = "crossplane",
    category = "provider",
    category = "gpu",
    printcolumn = r#"{"name": "Source", "type": "string", "jsonPath": ".spec.credentials.source"}"#,
    printcolumn = r#"{"name": "Users", "type": "integer", "jsonPath": ".status.users"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigSpec {
    /// How the provider authenticates.
    pub credentials: Credentials,
    /// Where the provider sends its calls; AWS's own endpoints by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// URLs of SQS queues that EventBridge sends EC2's events to, by region:
    /// interruption warnings, rebalance recommendations and state changes. Without
    /// one, an interruption is noticed when it has happened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_queues: BTreeMap<String, String>,
}

/// AWS access for `SpotPool`s of every namespace.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "ClusterProviderConfig",
    plural = "clusterproviderconfigs",
    status = "ProviderConfigStatus",
    category = "crossplane",
    category = "provider",
    category = "gpu",
    printcolumn = r#"{"name": "Source", "type": "string", "jsonPath": ".spec.credentials.source"}"#,
    printcolumn = r#"{"name": "Users", "type": "integer", "jsonPath": ".status.users"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProviderConfigSpec {
    /// How the provider authenticates.
    pub credentials: Credentials,
    /// Where the provider sends its calls; AWS's own endpoints by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// URLs of SQS queues that EventBridge sends EC2's events to, by region:
    /// interruption warnings, rebalance recommendations and state changes. Without
    /// one, an interruption is noticed when it has happened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_queues: BTreeMap<String, String>,
}

/// Credentials and where they come from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.source != 'Secret' || has(self.secretRef)")
        .message("secretRef is required when source is Secret")
)]
pub struct Credentials {
    /// `Secret` reads an INI profile from a Secret; `IRSA` uses the web identity
    /// token that EKS mounts into the provider's pod.
    pub source: CredentialSource,
    /// The key of a Secret with a profile in INI form: `aws_access_key_id`,
    /// `aws_secret_access_key` and, optionally, `aws_session_token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeySelector>,
}

/// Where credentials come from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// A key of a Secret.
    Secret,
    /// IAM roles for service accounts.
    #[serde(rename = "IRSA")]
    Irsa,
}

/// A key of a Secret.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct SecretKeySelector {
    /// The Secret's namespace. A `ProviderConfig` reads its own namespace only.
    pub namespace: String,
    /// The Secret's name.
    pub name: String,
    /// The key within it.
    pub key: String,
}

/// An endpoint other than AWS's own: a VPC endpoint, a proxy, an emulator.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub url: EndpointUrl,
}

/// A fixed address for every service.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct EndpointUrl {
    /// `Static`: the address is the one given.
    #[serde(rename = "type")]
    pub type_: EndpointType,
    /// For example `https://vpce-0123.ec2.us-east-1.vpce.amazonaws.com`.
    #[schemars(regex(pattern = r"^https?://[^\s/]+.*$"))]
    #[serde(rename = "static")]
    pub static_: String,
}

/// How the address is found.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointType {
    /// As given.
    Static,
}

/// Records that a managed resource uses a configuration; owned by that resource,
/// so that it disappears with it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "ProviderConfigUsage",
    plural = "providerconfigusages",
    namespaced,
    category = "crossplane",
    category = "provider",
    category = "gpu",
    printcolumn = r#"{"name": "Config-Kind", "type": "string", "jsonPath": ".spec.providerConfigRef.kind"}"#,
    printcolumn = r#"{"name": "Config-Name", "type": "string", "jsonPath": ".spec.providerConfigRef.name"}"#,
    printcolumn = r#"{"name": "Resource-Kind", "type": "string", "jsonPath": ".spec.resourceRef.kind"}"#,
    printcolumn = r#"{"name": "Resource-Name", "type": "string", "jsonPath": ".spec.resourceRef.name"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigUsageSpec {
    /// The configuration in use.
    pub provider_config_ref: ProviderConfigReference,
    /// The managed resource that uses it.
    pub resource_ref: ResourceReference,
}
