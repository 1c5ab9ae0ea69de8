//! `WorkspaceFlavor`: what pods a platform team offers, and how far a claim may
//! go beyond.
//!
//! It is a composite of its own, so that it comes with the configuration package;
//! the function composes nothing for it and says whether it is usable.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cores, or thousandths of them: `4`, `1500m`.
pub(crate) const CPU: &str = r"^[1-9][0-9]{0,5}m?$";
/// Memory: `512Mi`, `16Gi`.
pub(crate) const MEMORY: &str = r"^[1-9][0-9]{0,6}(Mi|Gi)$";

/// An offer: image, size and place of a workspace's pods.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "WorkspaceFlavor",
    plural = "workspaceflavors"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceFlavorSpec {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub description: Option<String>,
    /// The image's reference, best by digest. What it must bring is in
    /// images/workspace/README.md.
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")
    )]
    pub image: String,
    /// OpenCV release that the image brings; pods check it when they start.
    #[schemars(
        length(max = 32),
        regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+(\.[0-9]+)?$")
    )]
    pub opencv_version: String,
    /// PyTorch release that the image brings; pods check it when they start.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub pytorch_version: String,
    /// CPUs that each node has for sure, in cores or thousandths: `4`, `1500m`. What
    /// the machine has idle is there as well.
    #[schemars(regex(pattern = CPU))]
    pub cpu: String,
    /// Memory of each node, with that of `shmSize`: `16Gi`.
    #[schemars(regex(pattern = MEMORY))]
    pub memory: String,
    /// GPUs of each node.
    #[serde(default)]
    #[schemars(range(min = 0, max = 16))]
    pub gpus: i32,
    /// The extended resource that counts GPUs.
    #[serde(default = "default_gpu_resource")]
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$"))]
    pub gpu_resource: String,
    /// The value of a node's label `nvidia.com/gpu.product`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    )]
    pub gpu_product: Option<String>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pods put up with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// The node's container runtime for GPUs, where it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub runtime_class_name: Option<String>,
    /// Size of `/dev/shm`, which data loaders and NCCL use. It counts as memory.
    #[serde(default = "default_shm_size")]
    #[schemars(regex(pattern = MEMORY))]
    pub shm_size: String,
    /// Volumes of the claim's namespace that every node sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub shared_volumes: Vec<SharedVolume>,
    /// Environment variables of NCCL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nccl: BTreeMap<String, String>,
    /// The storage class of homes; the cluster's default when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub storage_class_name: Option<String>,
    /// What a claim may set itself.
    #[serde(default)]
    pub overrides: AllowedOverrides,
}

/// A taint that pods put up with, as Kubernetes has it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; every one's when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Exists` or `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(Exists|Equal)$"))]
    pub operator: Option<String>,
    /// The taint's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The taint's effect; every one when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(NoSchedule|PreferNoSchedule|NoExecute)$"))]
    pub effect: Option<String>,
}

/// A volume that several pods see.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SharedVolume {
    /// The `PersistentVolumeClaim` in the claim's namespace.
    #[schemars(
        length(max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub claim_name: String,
    /// Where it is mounted.
    #[schemars(length(max = 256), regex(pattern = r"^/[A-Za-z0-9._/-]+$"))]
    pub mount_path: String,
    /// A folder of the volume instead of all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"))]
    pub sub_path: Option<String>,
    /// Whether nobody writes to it.
    #[serde(default)]
    pub read_only: bool,
}

/// What a claim may set itself, and how far. Unset: it may not.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AllowedOverrides {
    /// The most CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = CPU))]
    pub max_cpu: Option<String>,
    /// The most memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = MEMORY))]
    pub max_memory: Option<String>,
    /// The most GPUs of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub max_gpus: Option<i32>,
    /// The largest `/dev/shm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = MEMORY))]
    pub max_shm_size: Option<String>,
    /// Other images, whole references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub images: Vec<String>,
    /// Whether the workspace may have its service account's token.
    #[serde(default)]
    pub service_account_token: bool,
}

fn default_gpu_resource() -> String {
    "nvidia.com/gpu".into()
}

fn default_shm_size() -> String {
    "1Gi".into()
}
