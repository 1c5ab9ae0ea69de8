//! `WorkspaceFlavor`: a machine that a platform team offers by name. One half describes pods: their
//! image, size and place, and the limits for changes in a claim. The other half describes EC2
//! instances: their types, image, disk and market.
//!
//! A flavor is a composite, so that the configuration package can install its definition. The
//! function composes nothing for a flavor. It only reports whether the flavor is usable.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::CapacityType;
use crate::fields::is_default;
use crate::patterns::{
    CONTAINER_IMAGE, CPU, DNS_NAME, GPU_PRODUCT, GPU_RESOURCE, INSTANCE_TYPE, MEMORY, MOUNT_PATH,
    OPENCV_VERSION, PYTORCH_VERSION, REGION, SUB_PATH, TAINT_EFFECT, TOLERATION_OPERATOR,
};
use crate::policy::CatalogueReference;

/// The machines of workspaces that use this flavor: pods, EC2 instances, or both.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "WorkspaceFlavor",
    doc = "Offers developers a machine by name: pods of one image and size, EC2 instances of some \
           types, or both.",
    plural = "workspaceflavors",
    status = "WorkspaceFlavorStatus"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.ec2) || has(self.image)")
        .message("describe pods (image, opencvVersion, pytorchVersion, cpu and memory), or ec2, or both"),
    validation = Rule::new("[has(self.image), has(self.opencvVersion), has(self.pytorchVersion), has(self.cpu), has(self.memory)].all(set, set == has(self.image))")
        .message("pods need all of image, opencvVersion, pytorchVersion, cpu and memory")
)]
pub struct WorkspaceFlavorSpec {
    /// Text that tells developers what the flavor is for. The function ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub description: Option<String>,
    /// EC2 instances of workspaces that use this flavor. Default: the flavor is for pods only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ec2: Option<FlavorInstance>,
    /// Container image, preferably by digest. images/workspace/README.md lists what the image must
    /// contain. Default: the flavor is for EC2 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = CONTAINER_IMAGE))]
    pub image: Option<String>,
    /// OpenCV release in the image, for example `4.8.0`. Pods check it when they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = OPENCV_VERSION))]
    pub opencv_version: Option<String>,
    /// Whether the image's OpenCV has the contrib modules.
    #[serde(default, skip_serializing_if = "is_default")]
    pub opencv_contrib: bool,
    /// PyTorch release in the image, for example `2.12.1`. Pods check it when they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = PYTORCH_VERSION))]
    pub pytorch_version: Option<String>,
    /// CPUs that each pod requests, in cores or thousandths of a core, for example `4` or `1500m`.
    /// There is no limit: a pod may also use idle CPUs of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = CPU))]
    pub cpu: Option<String>,
    /// Memory of each pod, including `shmSize`, for example `16Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub memory: Option<String>,
    /// Number of GPUs of each pod. 0 means none.
    #[serde(default)]
    #[schemars(range(min = 0, max = 16))]
    pub gpus: i32,
    /// Extended resource that counts the GPUs of a node, for example `nvidia.com/gpu`.
    #[serde(default = "default_gpu_resource")]
    #[schemars(length(max = 253), regex(pattern = GPU_RESOURCE))]
    pub gpu_resource: String,
    /// GPU product that a node must have: the value of its label `nvidia.com/gpu.product`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = GPU_PRODUCT))]
    pub gpu_product: Option<String>,
    /// Labels that a node must have to run the pods. Default: no label is required.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pods tolerate. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// `RuntimeClass` for GPU containers. Default: the default runtime of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = DNS_NAME))]
    pub runtime_class_name: Option<String>,
    /// Size of `/dev/shm`, which data loaders and NCCL use. It counts towards `memory`.
    #[serde(default = "default_shm_size")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub shm_size: String,
    /// Largest disk space of each pod outside of homes: its own files, its logs, and the home of a
    /// claim without one. Kubernetes ends a pod that uses more. It holds from behaviour version v3
    /// on.
    #[serde(default = "default_scratch")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub scratch: String,
    /// Whether each pod has a user namespace of its own (`hostUsers: false`), so that root in a
    /// container is no user of the node. Nodes need Kubernetes 1.33 or later and a container runtime
    /// that supports it. It holds from behaviour version v3 on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_namespace: bool,
    /// Volumes in the claim's namespace that are mounted into every pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub shared_volumes: Vec<SharedVolume>,
    /// Environment variables for NCCL in the pods, for example `NCCL_DEBUG`. Each name begins with
    /// `NCCL_`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nccl: BTreeMap<String, String>,
    /// Storage class of homes. Default: the default class of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = DNS_NAME))]
    pub storage_class_name: Option<String>,
    /// Settings that a claim may change, and how far. Default: a claim may change none.
    #[serde(default)]
    pub overrides: AllowedOverrides,
}

/// The EC2 instances of a flavor.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FlavorInstance {
    /// EC2 instance types in order of preference, for example `g4dn.xlarge`. The policy must allow
    /// each of them.
    #[schemars(length(min = 1, max = 10), inner(length(max = 32), regex(pattern = INSTANCE_TYPE)))]
    pub instance_types: Vec<String>,
    /// Name of the image in the catalogue. Default: the policy's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub image: Option<String>,
    /// Market of the instance: `Spot`, `SpotWithFallback` or `OnDemand`. Default: the policy's market.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
    /// Size of the root volume in GiB. Default: the policy's size.
    #[serde(
        default,
        rename = "rootVolumeSizeGiB",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 8, max = 16384))]
    pub root_volume_size_gib: Option<i32>,
}

/// What the machine of a flavor has and costs, by the catalogue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceFlavorStatus {
    /// Placements of the flavor: `EC2`, `Cluster`, or `EC2, Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placements: Option<String>,
    /// GPUs of the machine, for example `1 x T4 16Gi`. Unset without GPUs, and for an instance type
    /// that the catalogue does not describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// CPUs of the machine, for example `4` or `500m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory of the machine, for example `16Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// On-demand price of the first instance type in US dollars per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_hourly_usd: Option<f64>,
    /// Price of one pod in US dollars per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_hourly_usd: Option<f64>,
}

/// Says where the menu of flavors gets descriptions and prices from. The input of the Composition of
/// flavors. A Composition without it shows neither.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlavorPolicy {
    /// API version of the policy. It is always `workspace.fn.platform.acme.io/v1alpha1`.
    pub api_version: String,
    /// Kind of the policy. It is always `FlavorPolicy`.
    pub kind: String,
    /// Ignored. It is allowed because some tools require metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::policy::any_object")]
    pub metadata: Option<serde_json::Value>,
    /// EnvironmentConfigs that hold the catalogue.
    pub catalogue: CatalogueReference,
    /// AWS region of the prices of EC2 instances. Default: `us-east-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = REGION))]
    pub region: Option<String>,
}

/// A toleration of a taint, as in a pod's spec.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key of the taint. Default: all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How the taint is compared: `Exists` accepts every value of the taint, `Equal` accepts only
    /// `value`. Default: `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = TOLERATION_OPERATOR))]
    pub operator: Option<String>,
    /// Value of the taint, for the operator `Equal`. Default: the empty value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Effect of the taint: `NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: all effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = TAINT_EFFECT))]
    pub effect: Option<String>,
}

/// A volume that is mounted into all pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SharedVolume {
    /// Name of the `PersistentVolumeClaim` in the claim's namespace.
    #[schemars(length(max = 253), regex(pattern = DNS_NAME))]
    pub claim_name: String,
    /// Absolute path at which the volume is mounted.
    #[schemars(length(max = 256), regex(pattern = MOUNT_PATH))]
    pub mount_path: String,
    /// Folder of the volume to mount. Default: the whole volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = SUB_PATH))]
    pub sub_path: Option<String>,
    /// Whether the pods may only read the volume.
    #[serde(default)]
    pub read_only: bool,
}

/// Settings that a claim may change, and their limits. A claim may not change a setting whose limit
/// is unset.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AllowedOverrides {
    /// Largest number of CPUs that a claim may set for each pod, for example `16`. Default: a claim
    /// cannot change the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = CPU))]
    pub max_cpu: Option<String>,
    /// Largest memory that a claim may set for each pod, for example `64Gi`. Default: a claim
    /// cannot change the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub max_memory: Option<String>,
    /// Largest number of GPUs that a claim may set for each pod. Default: a claim cannot change the
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub max_gpus: Option<i32>,
    /// Largest size of `/dev/shm` that a claim may set, for example `8Gi`. Default: a claim cannot
    /// change the size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub max_shm_size: Option<String>,
    /// Additional images that a claim may use, as complete references. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub images: Vec<String>,
    /// Whether a claim may give its pods the token of their service account.
    #[serde(default)]
    pub service_account_token: bool,
}

fn default_gpu_resource() -> String {
    "nvidia.com/gpu".into()
}

fn default_scratch() -> String {
    "20Gi".into()
}

fn default_shm_size() -> String {
    "1Gi".into()
}
