//! Home volumes in EC2: what the policy says of them, and a pool's own.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of home volumes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HomePolicy {
    /// What becomes of a home volume when its claim is deleted.
    #[serde(default)]
    pub on_delete: HomeOnDelete,
    /// Whether a home on EC2 follows capacity to another zone, by a snapshot, while
    /// its own zone has none.
    #[serde(default)]
    pub moves: bool,
}

/// What becomes of a home volume when its claim is deleted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HomeOnDelete {
    /// It stays in EC2, with tags that say whose it is.
    #[default]
    Retain,
    /// It is deleted, with everything in it.
    Delete,
    /// A snapshot is made of it first; then it is deleted.
    Snapshot,
}

/// A volume for files that outlive the pool's instance.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolHome {
    /// Its size in GiB. It grows and never shrinks.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1, max = 16384))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("sizeGiB cannot shrink: a volume only grows"))]
    pub size_gib: i32,
    /// What becomes of it when the pool is deleted.
    #[serde(default)]
    pub on_delete: HomeOnDelete,
    /// Whether it follows capacity to another zone, by a snapshot, while its own zone
    /// has none.
    #[serde(default)]
    pub moves: bool,
}

/// A pool's home volume in EC2.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolHomeStatus {
    /// EC2's volume id, once EC2 has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_id: Option<String>,
    /// The availability zone that it is in, or is to be made in.
    pub zone: String,
    /// EC2's volume state, for example `in-use`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Its size.
    #[serde(default, rename = "sizeGiB", skip_serializing_if = "Option::is_none")]
    pub size_gib: Option<i32>,
    /// The instance that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
    /// The snapshot by which it moves to another zone, or that was made before it was
    /// deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// The volume that it is a copy of, in another zone or in a snapshot, until that one
    /// is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
    /// When EC2 was last asked for a volume or a snapshot, or is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Time>,
    /// Volumes ever decided on; the token of the next one holds this number plus one.
    #[serde(default)]
    pub generation: i64,
}
