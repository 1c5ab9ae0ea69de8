//! A workspace in the cluster: what a claim may say of its pods, and what comes
//! back.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flavor::{CPU, MEMORY, SharedVolume, Toleration};
use crate::lifecycle::PodAgent;

/// What a claim changes of its flavor, as far as the flavor lets it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FlavorOverrides {
    /// CPUs of each node: `4`, `1500m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = CPU))]
    pub cpu: Option<String>,
    /// Memory of each node: `16Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = MEMORY))]
    pub memory: Option<String>,
    /// GPUs of each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub gpus: Option<i32>,
    /// Size of `/dev/shm`: `2Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = MEMORY))]
    pub shm_size: Option<String>,
    /// Another image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")
    )]
    pub image: Option<String>,
    /// Whether the pods have their service account's token.
    #[serde(default)]
    pub service_account_token: bool,
}

/// Several nodes for one `torchrun`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Distributed {
    /// How many.
    #[schemars(range(min = 1, max = 64))]
    pub nodes: i32,
    /// GPUs of each one; the flavor's when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub gpus_per_node: Option<i32>,
}

/// Where a workspace waits for quota: Kueue's names.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceQueue {
    /// The LocalQueue of the claim's namespace; the policy's when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub name: Option<String>,
    /// The WorkloadPriorityClass; the policy's when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub priority_class: Option<String>,
}

/// What a workspace's pods are made of: chosen when it starts, and kept until it
/// stops, whatever becomes of claim and flavor meanwhile.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenPods {
    /// The flavor's name.
    pub flavor: String,
    /// How many nodes.
    pub nodes: i32,
    /// Image reference.
    pub image: String,
    /// OpenCV release of the image.
    pub opencv_version: String,
    /// PyTorch release of the image.
    pub pytorch_version: String,
    /// CPUs of each node.
    pub cpu: String,
    /// Memory of each node.
    pub memory: String,
    /// GPUs of each node.
    pub gpus: i32,
    /// The extended resource that counts them.
    pub gpu_resource: String,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pods put up with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// The container runtime, where it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// Size of `/dev/shm`.
    pub shm_size: String,
    /// Volumes that every node sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_volumes: Vec<SharedVolume>,
    /// Environment variables of NCCL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nccl: BTreeMap<String, String>,
    /// Whether the pods have their service account's token.
    #[serde(default)]
    pub service_account_token: bool,
    /// The agent beside the owner's container; none where nobody asks who uses the
    /// workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PodAgent>,
    /// Where they wait for quota; none without Kueue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<ChosenQueue>,
}

/// Where pods wait for quota.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenQueue {
    /// The LocalQueue.
    pub name: String,
    /// The WorkloadPriorityClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class: Option<String>,
}

/// One node of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// The pod.
    pub name: String,
    /// Its full DNS name.
    pub host: String,
    /// Whether one can log in.
    pub ready: bool,
    /// Its address, which another start may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How a workspace stands in its queue, while it waits.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// The LocalQueue.
    pub name: String,
    /// Its place among those that wait in the same LocalQueue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i32>,
    /// What Kueue says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
