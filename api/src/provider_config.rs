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
    /// Roles to assume one after the other, the first one by `credentials`, each
    /// other one by the session of the role before it. EC2 is asked by the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assume_role_chain: Vec<AssumeRole>,
    /// Where the provider sends its calls, those of STS included; AWS's own endpoints
    /// by default.
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
    /// Roles to assume one after the other, the first one by `credentials`, each
    /// other one by the session of the role before it. EC2 is asked by the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assume_role_chain: Vec<AssumeRole>,
    /// Where the provider sends its calls, those of STS included; AWS's own endpoints
    /// by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// URLs of SQS queues that EventBridge sends EC2's events to, by region:
    /// interruption warnings, rebalance recommendations and state changes. Without
    /// one, an interruption is noticed when it has happened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_queues: BTreeMap<String, String>,
}

/// Credentials and where they come from, as upbound's provider-aws takes them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.source != 'Secret' || has(self.secretRef)")
        .message("secretRef is required when source is Secret"),
    validation = Rule::new("self.source != 'WebIdentity' || has(self.webIdentity)")
        .message("webIdentity is required when source is WebIdentity")
)]
pub struct Credentials {
    /// `Secret` reads an INI profile from a Secret. `IRSA` uses the web identity
    /// token that EKS mounts into the provider's pod, `PodIdentity` asks EKS's Pod
    /// Identity agent. `WebIdentity` exchanges a token of any issuer for a role's
    /// session. `None` signs nothing: `endpoint` has to.
    pub source: CredentialSource,
    /// The key of a Secret with a profile in INI form: `aws_access_key_id`,
    /// `aws_secret_access_key` and, optionally, `aws_session_token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeySelector>,
    /// What `WebIdentity` exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_identity: Option<WebIdentity>,
}

/// Where credentials come from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// No credentials: requests are not signed.
    None,
    /// A key of a Secret.
    Secret,
    /// IAM roles for service accounts.
    #[serde(rename = "IRSA")]
    Irsa,
    /// A token of an issuer (OIDC) that the role trusts.
    WebIdentity,
    /// EKS Pod Identity.
    PodIdentity,
}

/// A role, and the token that opens it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WebIdentity {
    /// The role to assume.
    #[serde(rename = "roleARN")]
    #[schemars(regex(pattern = r"^arn:[a-z-]+:iam::[0-9]{12}:role/.+$"))]
    pub role_arn: String,
    /// The session's name, as AWS logs it; `provider-gpu-spot` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[\w+=,.@-]{2,64}$"))]
    pub role_session_name: Option<String>,
    /// Where the token is; by default in the file that the provider's pod names in
    /// `AWS_WEB_IDENTITY_TOKEN_FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_config: Option<TokenConfig>,
}

/// Where a web identity token is.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.source != 'Secret' || has(self.secretRef)")
        .message("secretRef is required when source is Secret"),
    validation = Rule::new("self.source != 'Filesystem' || has(self.fs)")
        .message("fs is required when source is Filesystem")
)]
pub struct TokenConfig {
    /// The kind of place.
    pub source: TokenSource,
    /// The key of a Secret with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeySelector>,
    /// A file of the provider's pod with the token, read at every exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsSelector>,
}

/// The kinds of places of a token.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// A key of a Secret.
    Secret,
    /// A file of the provider's pod.
    Filesystem,
}

/// A file of the provider's pod.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct FsSelector {
    /// Its absolute path.
    #[schemars(regex(pattern = r"^/.+$"))]
    pub path: String,
}

/// A role to assume by the credentials before it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AssumeRole {
    /// The role.
    #[serde(rename = "roleARN")]
    #[schemars(regex(pattern = r"^arn:[a-z-]+:iam::[0-9]{12}:role/.+$"))]
    pub role_arn: String,
    /// What the role's trust policy asks a third party for (`sts:ExternalId`).
    #[serde(
        rename = "externalID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 2, max = 1224), regex(pattern = r"^[\w+=,.@:/-]*$"))]
    pub external_id: Option<String>,
    /// Tags of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<SessionTag>,
    /// Keys of tags that the sessions of the roles after this one have too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitive_tag_keys: Vec<String>,
}

/// A tag of a session.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct SessionTag {
    /// Its key.
    #[schemars(length(min = 1, max = 128))]
    pub key: String,
    /// Its value.
    #[schemars(length(max = 256))]
    pub value: String,
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
