//! Workspaces in the cluster: the claim's parameters for pods, and the status of pods.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flavor::{SharedVolume, Toleration};
use crate::lifecycle::PodAgent;
use crate::patterns::{CONTAINER_IMAGE, CPU, DNS_LABEL, MEMORY};

/// Changes to the flavor. The flavor's own `overrides` limit each of them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FlavorOverrides {
    /// CPUs that each pod requests, in cores or thousandths of a core, for example `4` or `1500m`.
    /// Default: those of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = CPU))]
    pub cpu: Option<String>,
    /// Memory of each pod, for example `16Gi`. Default: that of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub memory: Option<String>,
    /// Number of GPUs of each pod. Default: that of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub gpus: Option<i32>,
    /// Size of `/dev/shm` in each pod, for example `2Gi`. It counts towards `memory`. Default: that
    /// of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub shm_size: Option<String>,
    /// Container image of the pods. It must be one of those that the flavor allows. Default: the
    /// image of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = CONTAINER_IMAGE))]
    pub image: Option<String>,
    /// Whether the pods get the token of their service account. The flavor must allow it.
    #[serde(default)]
    pub service_account_token: bool,
}

/// Runs the workspace as several pods, for one `torchrun` across all of them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Distributed {
    /// Number of pods of the workspace. The policy sets the largest number.
    #[schemars(range(min = 1, max = 64))]
    pub nodes: i32,
    /// Number of GPUs of each pod. Default: that of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub gpus_per_node: Option<i32>,
}

/// The Kueue queue in which the workspace waits for quota.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceQueue {
    /// Name of the LocalQueue in the claim's namespace. Default: the policy's queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = DNS_LABEL))]
    pub name: Option<String>,
    /// Name of the WorkloadPriorityClass. Default: the policy's class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = DNS_LABEL))]
    pub priority_class: Option<String>,
}

/// Settings of the workspace's pods. The function chooses them when the workspace starts and keeps
/// them until it stops, even if the claim or the flavor changes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenPods {
    /// Name of the WorkspaceFlavor that the pods use.
    pub flavor: String,
    /// Number of pods of the workspace.
    pub nodes: i32,
    /// Container image of the pods.
    pub image: String,
    /// OpenCV release in the image, for example `4.8.0`.
    pub opencv_version: String,
    /// PyTorch release in the image, for example `2.12.1`.
    pub pytorch_version: String,
    /// CPUs that each pod requests, in cores or thousandths of a core, for example `1500m`.
    pub cpu: String,
    /// Memory of each pod, for example `16Gi`.
    pub memory: String,
    /// Number of GPUs of each pod. 0 means none.
    pub gpus: i32,
    /// Extended resource that counts GPUs, for example `nvidia.com/gpu`.
    pub gpu_resource: String,
    /// Labels that a node must have to run the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// `RuntimeClass` of the pods; none for the default of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// Size of `/dev/shm` in each pod, for example `1Gi`.
    pub shm_size: String,
    /// Volumes that are mounted into every pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_volumes: Vec<SharedVolume>,
    /// Environment variables for NCCL in the pods, for example `NCCL_DEBUG`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nccl: BTreeMap<String, String>,
    /// Whether the pods get the token of their service account.
    #[serde(default)]
    pub service_account_token: bool,
    /// Agent that reports whether the workspace is used; none if the policy names no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PodAgent>,
    /// Kueue queue in which the pods wait for quota; none if the policy does not use Kueue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<ChosenQueue>,
    /// Largest disk space of each pod outside of homes; none for pods of behaviour versions before
    /// v3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<String>,
    /// Size of each pod for its price, in thousandths of its flavor; none for the flavor's own size,
    /// and for pods of behaviour versions before v3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 0))]
    pub size_permille: Option<u32>,
    /// Whether the pods have a user namespace of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_namespace: bool,
}

impl ChosenPods {
    /// Whether the pods have the template of behaviour version v3 or later.
    pub fn is_bounded(&self) -> bool {
        self.scratch.is_some()
    }
}

/// The Kueue queue in which pods wait for quota.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenQueue {
    /// Name of the LocalQueue in which the pods wait for quota.
    pub name: String,
    /// Name of the WorkloadPriorityClass; none if neither claim nor policy names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class: Option<String>,
}

/// Status of one pod of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Name of the pod in the claim's namespace.
    pub name: String,
    /// Full DNS name of the pod, which the cluster resolves.
    pub host: String,
    /// Whether the pod is ready, so that the owner can log in.
    pub ready: bool,
    /// IP address of the pod. It may change when the pod starts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Why the pod is not ready. Unset while it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The workspace's position in its Kueue queue while it waits.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Name of the LocalQueue in which the workspace waits.
    pub name: String,
    /// Position among the workloads that wait in the same LocalQueue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i32>,
    /// What Kueue says about the workload, for example why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
