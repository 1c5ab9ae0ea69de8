//! `WorkspacePolicy`: the function's input, in a Composition.
//!
//! A Composition's revision pins it, so a changed policy reaches workspaces by
//! the Composition's update policy. Crossplane neither installs its schema nor
//! checks it at admission: the function refuses unknown fields itself.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::managed::ProviderConfigReference;
use crate::workspace::WorkspaceCapacityType;

/// What the platform team decides for every workspace of a Composition.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspacePolicy {
    /// `workspace.fn.platform.acme.io/v1alpha1`.
    pub api_version: String,
    /// `WorkspacePolicy`.
    pub kind: String,
    /// Ignored; some tools want an object's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub metadata: Option<serde_json::Value>,
    /// The rendering that this Composition is written for; a later function
    /// renders it the same way.
    pub behaviour_version: BehaviourVersion,
    /// The EnvironmentConfig with images, networks and owners.
    pub catalogue: CatalogueReference,
    /// Credentials for the pools.
    #[serde(default)]
    pub provider_config_ref: ProviderConfigReference,
    /// Values for what a claim leaves open.
    #[serde(default)]
    pub defaults: PolicyDefaults,
    /// Instance types that claims may ask for: exact names, or a family with
    /// `.*`, for example `g5.*`.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = r"^[a-z][a-z0-9-]*\.([a-z0-9-]+|\*)$"))
    )]
    pub allowed_instance_types: Vec<String>,
    /// Networks from which SSH may be allowed at most; a claim's CIDR must lie
    /// within one of them. Unset: any but the whole internet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_cidr_ceiling: Option<Vec<String>>,
    /// How the instances are set up.
    #[serde(default)]
    pub instance: InstancePolicy,
    /// Longest time in seconds until the function looks again.
    #[serde(default = "default_refresh_seconds")]
    #[schemars(range(min = 10, max = 86400))]
    pub refresh_seconds: u32,
}

/// A rendering of the function. Desired state is byte-identical for the same
/// version across releases.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehaviourVersion {
    /// The first.
    #[serde(rename = "v1")]
    V1,
}

/// The EnvironmentConfig that holds the catalogue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogueReference {
    /// Its name.
    pub name: String,
}

/// Values for what a claim leaves open.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyDefaults {
    /// Market; `SpotWithFallback` when unset.
    #[serde(default)]
    pub capacity_type: WorkspaceCapacityType,
    /// Key of the image in the catalogue; `default` when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Networks from which SSH is allowed when a claim names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_cidrs: Vec<String>,
}

/// How instances are set up.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstancePolicy {
    /// Size of the root volume in GiB; the image's own when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8, max = 16384))]
    pub root_volume_size_gib: Option<i32>,
    /// Name of an IAM instance profile for the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_instance_profile: Option<String>,
    /// Whether `developer` may use sudo without a password.
    #[serde(default)]
    pub sudo: bool,
    /// Further tags on everything in EC2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

fn default_refresh_seconds() -> u32 {
    600
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true
    })
}
