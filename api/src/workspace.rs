//! `GpuDevWorkspace`: the developer's request for a workspace, and its status.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::{CapacityType, InstanceCapacityType};
use crate::catalogue::{ImageOpencv, ImagePytorch};
use crate::cluster::{
    ChosenPods, Distributed, FlavorOverrides, NodeStatus, QueueStatus, WorkspaceQueue,
};
use crate::cost::CostStatus;
use crate::fields::is_default;
use crate::internal::InternalStatus;
use crate::lifecycle::{ActivityStatus, LifecycleStatus, WorkspaceLifecycle};
use crate::patterns::{
    DNS_NAME, GPU_NAME, INSTANCE_TYPE, IPV4_NETWORK, MEMORY, OPENCV_VERSION, OWNER, PUBLIC_KEY,
    PYTORCH_VERSION, REGION, VOLUME_SIZE,
};

/// Describes the workspace that a developer wants.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "GpuDevWorkspace",
    doc = "Gives one developer a GPU machine with PyTorch, OpenCV and SSH access: an EC2 \
           instance, or pods in the cluster.",
    plural = "gpudevworkspaces",
    status = "GpuDevWorkspaceStatus"
)]
pub struct GpuDevWorkspaceSpec {
    /// Parameters of the workspace. All are optional, except `owner` if the policy binds no owners to
    /// Namespaces.
    pub parameters: WorkspaceParameters,
}

/// Parameters of a workspace. All are optional, except `owner` if the policy binds no owners to
/// Namespaces.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(oldSelf.owner) || has(self.owner)")
        .message("owner cannot be removed: the home and the machine hold the owner's files and keys"),
    validation = Rule::new("!has(oldSelf.home) || has(self.home)")
        .message("home cannot be removed: it holds the owner's files; delete the claim to let go of it"),
    validation = Rule::new("self.placement == 'Cluster' || !(has(self.overrides) || has(self.distributed) || has(self.queue))")
        .message("overrides, distributed and queue need placement Cluster"),
    validation = Rule::new("self.placement == 'EC2' || !(has(self.capacityType) || has(self.instanceTypes) || has(self.gpu) || has(self.image))")
        .message("capacityType, instanceTypes, gpu and image need placement EC2: a flavor says how pods are made"),
    validation = Rule::new("!(has(self.gpu) && (has(self.instanceTypes) || has(self.flavor)))")
        .message("gpu excludes flavor and instanceTypes: it chooses among the instance types of the platform"),
    validation = Rule::new("!(has(self.flavor) && has(self.instanceTypes))")
        .message("flavor excludes instanceTypes: a flavor names its instance types")
)]
pub struct WorkspaceParameters {
    /// Name of the person who owns the workspace, for example `alice`: lower-case letters, digits,
    /// `.`, `_` and `-`. Immutable: the home and the machine hold the owner's files and keys.
    /// Default: the owner in the label of the Namespace. Required if the policy binds no owners to
    /// Namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = OWNER))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("owner is immutable: the home and the machine hold the owner's files and keys; delete the claim and create another"))]
    pub owner: Option<String>,
    /// EC2 instance type that the workspace prefers, for example `g5.xlarge`. The policy decides
    /// which types are allowed. It has no effect beside `flavor` or `gpu`. Default: the policy's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = INSTANCE_TYPE))]
    pub instance_type: Option<String>,
    /// Further EC2 instance types that are acceptable, in order of preference. Default: only
    /// `instanceType`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 32), regex(pattern = INSTANCE_TYPE)))]
    pub instance_types: Vec<String>,
    /// GPUs of the EC2 instance. The function chooses the allowed instance types that have them, the
    /// cheapest first. Default: the GPUs of `instanceType` or `flavor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuWish>,
    /// AWS region of the instance, for example `eu-central-1`. Immutable: an instance cannot move
    /// to another region. Default: the policy's region when the workspace starts first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = REGION))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region is immutable: delete the claim and create another"))]
    pub region: Option<String>,
    /// Name of the machine image in the platform's catalogue, for placement `EC2`, for example
    /// `cuda`. Another name replaces the instance and keeps the home. Default: the image of the flavor,
    /// or else of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = DNS_NAME))]
    pub image: Option<String>,
    /// OpenCV release, for example `4.8.0`. Default: the release in the image or flavor, or `4.8.0`
    /// on EC2 if the image has no OpenCV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = OPENCV_VERSION))]
    pub opencv_version: Option<String>,
    /// Whether OpenCV has the contrib modules, for example `cv2.aruco` and `cv2.xfeatures2d`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub opencv_contrib: bool,
    /// PyTorch release, for example `2.12.1`. Default: the policy's release, or else the release in
    /// the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = PYTORCH_VERSION))]
    pub pytorch_version: Option<String>,
    /// Where the workspace runs: `EC2` means on an EC2 instance, `Cluster` means in pods of the
    /// cluster. Immutable: a home cannot move between EC2 and the cluster.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("placement is immutable: delete the claim and create another"))]
    pub placement: Placement,
    /// Market of the EC2 instance. AWS may take a `Spot` instance back. It does not take an
    /// `OnDemand` instance back. `SpotWithFallback` takes an on-demand instance while no spot
    /// capacity is available. Default: the policy's market.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
    /// SSH access to the workspace: the public keys that may log in, and the networks that may
    /// connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<WorkspaceSsh>,
    /// Volume for the owner's files. It outlives instances and pods. Default: no volume, so the
    /// files are lost with the instance or pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<WorkspaceHome>,
    /// Name of the WorkspaceFlavor, for example `t4`. In the cluster, it says how the pods are made.
    /// On EC2, it says which instance types, image and disk the instance has. Default: the policy's
    /// flavor in the cluster, none on EC2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = DNS_NAME))]
    pub flavor: Option<String>,
    /// Changes to the flavor, for placement `Cluster`. The flavor limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<FlavorOverrides>,
    /// Runs the workspace as several pods for one `torchrun`, for placement `Cluster`. Default: one
    /// pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<Distributed>,
    /// Kueue queue in which the workspace waits for quota, for placement `Cluster`. Default: the
    /// policy's queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<WorkspaceQueue>,
    /// Whether the workspace runs, and for how long. Default: it runs, within the limits of the
    /// policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<WorkspaceLifecycle>,
}

/// The GPUs that a workspace needs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.name) || has(self.memory)").message("name a GPU, or the memory that it needs"))]
pub struct GpuWish {
    /// Name of the GPU, for example `T4` or `A10G`. Default: any GPU with enough memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = GPU_NAME))]
    pub name: Option<String>,
    /// Number of GPUs of the instance. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub count: Option<i32>,
    /// Smallest memory of each GPU, for example `16Gi`. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub memory: Option<String>,
}

/// Where a workspace runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// An EC2 instance.
    #[default]
    #[serde(rename = "EC2")]
    Ec2,
    /// Pods in the cluster.
    Cluster,
}

/// SSH access to a workspace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceSsh {
    /// OpenSSH public keys that may log in, each as one line of a `.pub` file. Default: only the
    /// keys that the platform team lists for the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 1024), regex(pattern = PUBLIC_KEY)))]
    pub public_keys: Vec<String>,
    /// IPv4 networks that may connect by SSH. Default: the policy's networks. If the policy has
    /// none, SSH is closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 18), regex(pattern = IPV4_NETWORK)))]
    #[x_kube(validation = Rule::new("self.all(network, isCIDR(network))").message("each entry must be an IPv4 network, for example 203.0.113.0/24"))]
    pub allowed_cidrs: Vec<String>,
}

/// The volume for the owner's files.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("has(self.size) != has(self.sizeGiB)")
        .message("set size, for example 100Gi, or sizeGiB, and not both"),
    validation = Rule::new("!has(self.size) || quantity(self.size).asInteger() <= 17592186044416")
        .message("size must be at most 16Ti, the largest volume of EC2"),
    validation = Rule::new("(has(self.size) ? quantity(self.size).asInteger() / 1073741824 : self.sizeGiB) >= (has(oldSelf.size) ? quantity(oldSelf.size).asInteger() / 1073741824 : oldSelf.sizeGiB)")
        .message("the size cannot shrink: a volume only grows")
)]
pub struct WorkspaceHome {
    /// Size of the volume, for example `100Gi` or `1Ti`. It can grow, but it cannot shrink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), regex(pattern = VOLUME_SIZE))]
    pub size: Option<String>,
    /// Size of the volume in GiB, for example 100, in place of `size`.
    #[serde(default, rename = "sizeGiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16384))]
    pub size_gib: Option<i32>,
}

impl WorkspaceHome {
    /// The size in GiB; 0 if the claim has no readable size.
    pub fn gib(&self) -> i32 {
        let size = self.size.as_deref().and_then(gib);
        self.size_gib.or(size).unwrap_or_default()
    }

    /// The field with the size.
    pub fn field(&self) -> &'static str {
        if self.size_gib.is_some() {
            "sizeGiB"
        } else {
            "size"
        }
    }
}

/// The GiB of a size that [`VOLUME_SIZE`] matches.
fn gib(size: &str) -> Option<i32> {
    match size.strip_suffix("Ti") {
        Some(tebibytes) => tebibytes.parse::<i32>().ok()?.checked_mul(1024),
        None => size.strip_suffix("Gi")?.parse().ok(),
    }
}

/// The state of the workspace: the SSH command, the machine or the pods, and the cost.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GpuDevWorkspaceStatus {
    /// Phase of the workspace. `Provisioning`: it is being created or started. `Ready`: the owner
    /// can log in. `Failed`: it cannot run. `Interrupted`: its instance is lost, and a replacement
    /// is being created. `Queued`: it waits for quota, or for its owner's budget. `Stopping`: its
    /// instances or pods are being stopped. `Stopped`: it does not run. `Expired`: it has run for
    /// its longest allowed time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Why the workspace has this phase. Unset while the phase is `Ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The owner of the workspace: the claim's, or the one in the label of its Namespace. It stays
    /// the same as long as the claim exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Command that logs in: `ssh developer@203.0.113.7` for an instance, `devctl ssh my-dev
    /// --namespace dev-alice` for pods. It is not in `status.connectionDetails`, because Crossplane
    /// replaces the schema of that field in claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// Machine in a few words: the type of the EC2 instance, or number and flavor of the pods, for
    /// example `2 x gpu-large`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Id of the EC2 instance, for example `i-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Type of the EC2 instance, for example `g5.xlarge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Market from which the EC2 instance was taken: `Spot` or `OnDemand`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<InstanceCapacityType>,
    /// Availability zone of the EC2 instance, for example `us-east-1a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Public IPv4 address of the EC2 instance. Unset if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Private IPv4 address of the EC2 instance, in its VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// AWS region of the EC2 instance. The workspace keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Settings of the EC2 instance that `flavor`, `gpu` or the policy's defaults chose. They hold
    /// until the workspace stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<InstanceChoice>,
    /// Machine image of the EC2 instance. The function chooses it from the catalogue once and then
    /// keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ChosenImage>,
    /// OpenCV release that the workspace has, for example `4.8.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencv_version: Option<String>,
    /// PyTorch release that the workspace has, for example `2.12.0`. Unset if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_version: Option<String>,
    /// Home volume on EC2. The function records it here, so that it finds the volume again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeStatus>,
    /// Settings of the pods, for placement `Cluster`. They hold until the workspace stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<ChosenPods>,
    /// Status of each pod, for placement `Cluster`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeStatus>,
    /// SSH host keys of the workspace, for the file `known_hosts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_keys: Vec<String>,
    /// Position in the Kueue queue while the workspace waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// Start, stop and deletion times of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<LifecycleStatus>,
    /// Whether the workspace is used, if an agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityStatus>,
    /// Cost of the workspace, if the catalogue has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostStatus>,
    /// The function's memory of the workspace. It may change with every version of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal: Option<InternalStatus>,
}

/// The home volume of a workspace on EC2.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HomeStatus {
    /// Id of the volume in EC2, for example `vol-0123456789abcdef0`.
    pub volume_id: String,
    /// Availability zone of the volume. The instance must run in the same zone.
    pub zone: String,
    /// Subnet of the first instance, in that zone. Unset in the default VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Id of the instance that the volume is attached to. Unset while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
    /// `SpotPool` that manages the volume. Unset if the volume is an `EBSVolume` of provider-aws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// Phase of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
// kube's `OptionalEnum` replaces the description of an optional field with that of its type.
#[schemars(description = "")]
pub enum Phase {
    /// The workspace is being created or started.
    Provisioning,
    /// The owner can log in.
    Ready,
    /// The workspace cannot run. `message` says why.
    Failed,
    /// The instance is lost. A replacement is being created.
    Interrupted,
    /// The workspace waits for quota, or for its owner's budget.
    Queued,
    /// Instances or pods are being stopped.
    Stopping,
    /// The workspace does not run: its claim says `Stopped`, or it was idle for too long. Its home
    /// is kept.
    Stopped,
    /// The workspace has run for its longest allowed time. Its home is kept.
    Expired,
}

/// The settings of an EC2 instance that the claim does not name itself.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct InstanceChoice {
    /// What the claim asked for, for example `flavor t4` or `gpu 1 x T4`. Another wish is chosen for
    /// anew.
    pub asked: String,
    /// Why the instance has these settings, for example `the cheapest of 2 allowed types that have
    /// it: g4dn.xlarge (1 x T4 with 16Gi, 0.526 USD per hour)`.
    pub why: String,
    /// Instance types in order of preference.
    pub instance_types: Vec<String>,
    /// Name of the image in the catalogue. Unset if the choice names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Market of the instance. Unset if the choice names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
    /// Size of the root volume in GiB. Unset if the choice names none.
    #[serde(
        default,
        rename = "rootVolumeSizeGiB",
        skip_serializing_if = "Option::is_none"
    )]
    pub root_volume_size_gib: Option<i32>,
}

/// The image chosen for this workspace, with all that its setup needs. The workspace keeps this
/// image. From behaviour version v3 on, the platform team can correct its entry in the catalogue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenImage {
    /// Id of the machine image (AMI), for example `ami-0123456789abcdef0`.
    pub id: String,
    /// Name of the image in the catalogue, for example `default`.
    pub name: String,
    /// Python interpreter of the image from which machines make the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// OpenCV installation in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencv: Option<ImageOpencv>,
    /// PyTorch installation in the image. Unset if the image has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch: Option<ImagePytorch>,
    /// URL of a package index for PyTorch releases that are not in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_index_url: Option<String>,
}
