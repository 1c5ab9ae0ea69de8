//! Home volumes on EC2: the policy for them, and the home of a `SpotPool`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to homes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HomePolicy {
    /// What happens to a home when its claim is deleted: `Retain` keeps it, `Delete` deletes it,
    /// `Snapshot` keeps a snapshot of it.
    #[serde(default)]
    pub on_delete: HomeOnDelete,
    /// Whether a home on EC2 may move to another availability zone while its own zone has no
    /// capacity. The provider moves it with a snapshot.
    #[serde(default)]
    pub moves: bool,
}

/// What happens to a home volume when its claim is deleted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HomeOnDelete {
    /// The volume stays in EC2, with tags that name its owner.
    #[default]
    Retain,
    /// The volume and all files on it are deleted.
    Delete,
    /// The provider creates a snapshot of the volume, then deletes the volume.
    Snapshot,
}

/// A volume for files that outlive the instance of the pool.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolHome {
    /// Size of the volume in GiB, for example 100. It can grow, but it cannot shrink.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1, max = 16384))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("sizeGiB cannot shrink: a volume only grows"))]
    pub size_gib: i32,
    /// What happens to the volume when the pool is deleted: `Retain` keeps it, `Delete` deletes it,
    /// `Snapshot` keeps a snapshot of it.
    #[serde(default)]
    pub on_delete: HomeOnDelete,
    /// Whether the volume may move to another availability zone while its own zone has no capacity.
    /// The provider moves it with a snapshot.
    #[serde(default)]
    pub moves: bool,
}

/// The home volume of a pool in EC2.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolHomeStatus {
    /// Id of the volume in EC2, for example `vol-0123456789abcdef0`. Unset until EC2 has created
    /// the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_id: Option<String>,
    /// Availability zone of the volume, for example `us-east-1a`.
    pub zone: String,
    /// Volume state in EC2, for example `in-use`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Size of the volume in EC2, in GiB.
    #[serde(default, rename = "sizeGiB", skip_serializing_if = "Option::is_none")]
    pub size_gib: Option<i32>,
    /// Id of the instance that the volume is attached to. Unset while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
    /// Snapshot from which the volume is created in another zone, or that is created before the
    /// volume is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Volume from which this volume, or its snapshot, is copied. Unset once the original volume is
    /// deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
    /// When the provider last asked EC2 for a volume or snapshot, or is about to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Time>,
    /// Number of volumes that the provider has decided on. The client token of the next one holds
    /// this number plus one.
    #[serde(default)]
    pub generation: i64,
}
