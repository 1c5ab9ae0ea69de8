//! The catalogue: the data of the EnvironmentConfig that a policy names.
//!
//! It holds what operations change without touching a Composition: images and
//! networks per region, and the owners' keys.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `data` of the EnvironmentConfig.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalogue {
    /// By region, then by the image's key.
    #[serde(default)]
    pub images: BTreeMap<String, BTreeMap<String, Image>>,
    /// By region; a region without an entry uses its default VPC.
    #[serde(default)]
    pub networks: BTreeMap<String, Network>,
    /// By owner.
    #[serde(default)]
    pub owners: BTreeMap<String, Owner>,
    /// What instance types cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// What machines cost.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// The day that the prices were taken, for example `2026-11-01`.
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub as_of: String,
    /// On-demand price in US dollars per hour, by region, then by type.
    #[serde(default)]
    pub hourly_usd: BTreeMap<String, BTreeMap<String, f64>>,
    /// Spot price in US dollars per hour, by region, then by type. A type without one
    /// counts at its on-demand price.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spot_hourly_usd: BTreeMap<String, BTreeMap<String, f64>>,
    /// Price of a node in the cluster in US dollars per hour, by `WorkspaceFlavor`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flavor_hourly_usd: BTreeMap<String, f64>,
}

/// One machine image.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// AMI id, immutable: never an alias that moves.
    pub id: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// PyTorch as the image brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch: Option<ImagePytorch>,
    /// Package index for PyTorch releases that the image does not bring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_index_url: Option<String>,
}

/// PyTorch as an image brings it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePytorch {
    /// The release, for example `2.12.1`.
    pub version: String,
    /// The interpreter that imports it, for example `/opt/pytorch/bin/python3`.
    pub python: String,
}

/// Where instances of a region are placed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// Subnets of one VPC; the default VPC's when empty. An on-demand workspace
    /// takes the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnet_ids: Vec<String>,
    /// The VPC of the subnets, where an on-demand workspace needs a security
    /// group of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    /// Existing security groups to use instead of one per pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_group_ids: Vec<String>,
}

/// What is known of an owner.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// OpenSSH public keys, beside those of the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_keys: Vec<String>,
}
