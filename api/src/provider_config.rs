//! How the provider reaches AWS: credentials and endpoints.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::managed::{ProviderConfigReference, ProviderConfigStatus, ResourceReference};
use crate::patterns::{ABSOLUTE_PATH, ENDPOINT, EXTERNAL_ID, ROLE_ARN, SESSION_NAME};

/// Configures access to AWS for the `SpotPool`s of one namespace. It uses the identity of the
/// provider's pod only with the provider's flag `--namespaced-identity`.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "ProviderConfig",
    doc = "Tells the provider how to reach AWS for the `SpotPool`s of one namespace.",
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
    /// How the provider authenticates to AWS.
    pub credentials: Credentials,
    /// Roles that the provider assumes one after the other. It assumes the first role with
    /// `credentials`, and each further role with the session of the role before. It calls EC2 with
    /// the last session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub assume_role_chain: Vec<AssumeRole>,
    /// Endpoint for all calls of the provider, including STS. Default: the endpoints of AWS. The
    /// provider's flag `--allowed-endpoints` has to list it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// Only a `ClusterProviderConfig` has queues: the provider deletes the messages that it reads,
    /// so the namespace could take those of all others. In an object of an older version the
    /// provider ignores them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    // Kubernetes (1.30) still takes other edits of an object that has an old queue: a value that an
    // edit leaves alone is not checked by a new rule ("Validation ratcheting").
    #[x_kube(
        validation = Rule::new("self.size() == 0")
            .message("only a ClusterProviderConfig has eventQueues: name the queue there")
    )]
    pub event_queues: BTreeMap<String, String>,
}

/// Configures access to AWS for the `SpotPool`s of every namespace.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "ClusterProviderConfig",
    doc = "Tells the provider how to reach AWS for the `SpotPool`s of every namespace.",
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
    /// How the provider authenticates to AWS.
    pub credentials: Credentials,
    /// Roles that the provider assumes one after the other. It assumes the first role with
    /// `credentials`, and each further role with the session of the role before. It calls EC2 with
    /// the last session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub assume_role_chain: Vec<AssumeRole>,
    /// Endpoint for all calls of the provider, including STS. Default: the endpoints of AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// URLs of SQS queues, by region. EventBridge must send EC2's events to them: interruption
    /// warnings, rebalance recommendations and state changes. Without a queue the provider sees an
    /// interruption only after it has happened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_queues: BTreeMap<String, String>,
}

/// Credentials for AWS. The fields are those of upbound's provider-aws.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.source != 'Secret' || has(self.secretRef)")
        .message("secretRef is required when source is Secret"),
    validation = Rule::new("self.source != 'WebIdentity' || has(self.webIdentity)")
        .message("webIdentity is required when source is WebIdentity")
)]
pub struct Credentials {
    /// `Secret` reads an INI profile from a Secret. `IRSA` uses the web identity token that EKS
    /// mounts into the provider's pod. `PodIdentity` asks EKS's Pod Identity agent. `WebIdentity`
    /// exchanges a token of an OIDC issuer for a session of a role. `None` sends unsigned requests:
    /// the server at `endpoint` has to sign them.
    pub source: CredentialSource,
    /// Key of a Secret that holds a profile in INI format: `aws_access_key_id`,
    /// `aws_secret_access_key` and, optionally, `aws_session_token`. Required for source `Secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeySelector>,
    /// The role and the token for source `WebIdentity`. Required for that source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_identity: Option<WebIdentity>,
}

/// The source of the credentials.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// No credentials: the provider does not sign its requests.
    None,
    /// A profile in a key of a Secret.
    Secret,
    /// IAM roles for service accounts (EKS).
    #[serde(rename = "IRSA")]
    Irsa,
    /// A token of an OIDC issuer that the role trusts.
    WebIdentity,
    /// EKS Pod Identity.
    PodIdentity,
}

/// A role, and the token that the provider exchanges for a session of it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WebIdentity {
    /// ARN of the IAM role that the provider assumes with the token.
    #[serde(rename = "roleARN")]
    #[schemars(length(max = 2048), regex(pattern = ROLE_ARN))]
    pub role_arn: String,
    /// Name of the session, which AWS logs. Default: `provider-gpu-spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = SESSION_NAME))]
    pub role_session_name: Option<String>,
    /// Where the provider reads the token. Default: the file that the environment variable
    /// `AWS_WEB_IDENTITY_TOKEN_FILE` of the provider's pod names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_config: Option<TokenConfig>,
}

/// Where the provider reads a web identity token.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.source != 'Secret' || has(self.secretRef)")
        .message("secretRef is required when source is Secret"),
    validation = Rule::new("self.source != 'Filesystem' || has(self.fs)")
        .message("fs is required when source is Filesystem")
)]
pub struct TokenConfig {
    /// Whether the token is in a Secret or in a file.
    pub source: TokenSource,
    /// Key of the Secret that holds the token. Required for source `Secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeySelector>,
    /// File in the provider's pod that holds the token. The provider reads it at every exchange.
    /// Required for source `Filesystem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsSelector>,
}

/// Where a web identity token is stored.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// A key of a Secret.
    Secret,
    /// A file in the provider's pod.
    Filesystem,
}

/// A file in the provider's pod.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct FsSelector {
    /// Absolute path of the file in the provider's pod.
    #[schemars(length(max = 4096), regex(pattern = ABSOLUTE_PATH))]
    pub path: String,
}

/// A role that the provider assumes with the session before it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AssumeRole {
    /// ARN of the IAM role that the provider assumes.
    #[serde(rename = "roleARN")]
    #[schemars(length(max = 2048), regex(pattern = ROLE_ARN))]
    pub role_arn: String,
    /// External id that the role's trust policy requires (condition key `sts:ExternalId`).
    #[serde(
        rename = "externalID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 2, max = 1224), regex(pattern = EXTERNAL_ID))]
    pub external_id: Option<String>,
    /// Tags of the role's session. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<SessionTag>,
    /// Keys of session tags that AWS passes on to the sessions of the following roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitive_tag_keys: Vec<String>,
}

/// A session tag.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct SessionTag {
    /// Key of the session tag, for example `team`.
    #[schemars(length(min = 1, max = 128))]
    pub key: String,
    /// Value of the session tag, for example `vision`.
    #[schemars(length(max = 256))]
    pub value: String,
}

/// A key of a Secret.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct SecretKeySelector {
    /// Namespace of the Secret. A `ProviderConfig` may only use its own namespace.
    pub namespace: String,
    /// Name of the Secret in that namespace.
    pub name: String,
    /// Key in the Secret's data that holds the value.
    pub key: String,
}

/// An endpoint that replaces those of AWS, for example a VPC endpoint, a proxy or an emulator.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address of the endpoint, the same for all services.
    pub url: EndpointUrl,
}

/// One fixed address for all services.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct EndpointUrl {
    /// `Static` is the only type: the address is the value of `static`.
    #[serde(rename = "type")]
    pub type_: EndpointType,
    /// URL of the endpoint, for example `https://vpce-0123.ec2.us-east-1.vpce.amazonaws.com`.
    #[schemars(length(max = 2048), regex(pattern = ENDPOINT))]
    #[serde(rename = "static")]
    pub static_: String,
}

/// How the address is determined.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointType {
    /// The address is the value of `static`.
    Static,
}

/// Records that a managed resource uses a provider configuration. The managed resource owns the
/// record, so Kubernetes deletes both together.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "ProviderConfigUsage",
    doc = "Records that a managed resource uses a provider configuration, which cannot be deleted \
           meanwhile.",
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
    /// Provider configuration that the managed resource uses.
    pub provider_config_ref: ProviderConfigReference,
    /// Managed resource that uses the configuration.
    pub resource_ref: ResourceReference,
}
