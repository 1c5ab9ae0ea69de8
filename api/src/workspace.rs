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
use crate::fields::{IPV4_NETWORK, REGION, is_default};
use crate::lifecycle::{ActivityStatus, LifecycleStatus, WorkspaceLifecycle};

/// An OpenSSH public key: type, base64 data and an optional comment.
pub(crate) const PUBLIC_KEY: &str = r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [A-Za-z0-9@._+-]+)?$";

/// A GPU workspace of one developer.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "GpuDevWorkspace",
    plural = "gpudevworkspaces",
    status = "GpuDevWorkspaceStatus"
)]
pub struct GpuDevWorkspaceSpec {
    /// Parameters of the workspace.
    pub parameters: WorkspaceParameters,
}

/// Parameters of a workspace. Only `owner` is required.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(oldSelf.home) || has(self.home)")
        .message("home cannot be removed: it holds the owner's files; delete the claim to let go of it"),
    validation = Rule::new("self.placement == 'Cluster' || !(has(self.flavor) || has(self.overrides) || has(self.distributed) || has(self.queue))")
        .message("flavor, overrides, distributed and queue need placement Cluster"),
    validation = Rule::new("self.placement == 'EC2' || !(has(self.capacityType) || has(self.instanceTypes))")
        .message("capacityType and instanceTypes need placement EC2: a flavor says where pods run")
)]
pub struct WorkspaceParameters {
    /// Owner of the workspace: lower-case letters, digits, `.`, `_` and `-`. Immutable: the home and
    /// the machine hold the owner's files and keys.
    #[schemars(
        length(max = 63),
        regex(pattern = r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$")
    )]
    #[x_kube(validation = Rule::new("self == oldSelf").message("owner is immutable: the home and the machine hold the owner's files and keys; delete the claim and create another"))]
    pub owner: String,
    /// EC2 instance type, the first choice.
    #[serde(default = "default_instance_type")]
    #[schemars(length(max = 32), regex(pattern = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"))]
    pub instance_type: String,
    /// Further EC2 instance types that are acceptable, in order of preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(max = 32), regex(pattern = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"))
    )]
    pub instance_types: Vec<String>,
    /// AWS region. Immutable: an instance cannot move to another region.
    #[serde(default = "default_region")]
    #[schemars(length(max = 32), regex(pattern = REGION))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region is immutable: delete the claim and create another"))]
    pub region: String,
    /// OpenCV release, for example `4.8.0`. Default: the release in the image or flavor, or `4.8.0`
    /// on EC2 if the image has no OpenCV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 32),
        regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+(\.[0-9]+)?$")
    )]
    pub opencv_version: Option<String>,
    /// Whether OpenCV has the contrib modules, for example `cv2.aruco` and `cv2.xfeatures2d`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub opencv_contrib: bool,
    /// PyTorch release. Default: the release in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub pytorch_version: Option<String>,
    /// Where the workspace runs. Immutable: a home cannot move between EC2 and the cluster.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("placement is immutable: delete the claim and create another"))]
    pub placement: Placement,
    /// Market of the instance: spot or on-demand. Default: the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
    /// SSH access: keys and networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<WorkspaceSsh>,
    /// Volume for the owner's files. It outlives instances and pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<WorkspaceHome>,
    /// Name of the WorkspaceFlavor, for placement `Cluster`. Default: the policy's flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub flavor: Option<String>,
    /// Changes to the flavor, for placement `Cluster`. The flavor limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<FlavorOverrides>,
    /// Several pods for one `torchrun`, for placement `Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<Distributed>,
    /// Kueue queue in which the workspace waits for quota, for placement `Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<WorkspaceQueue>,
    /// Whether the workspace runs, and for how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<WorkspaceLifecycle>,
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
    /// OpenSSH public keys of the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(max = 1024), regex(pattern = PUBLIC_KEY))
    )]
    pub public_keys: Vec<String>,
    /// IPv4 networks that may connect by SSH. Default: the policy's networks. If the policy has
    /// none, SSH is closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        inner(
            length(max = 18),
            regex(pattern = IPV4_NETWORK)
        )
    )]
    #[x_kube(validation = Rule::new("self.all(network, isCIDR(network))").message("each entry must be an IPv4 network, for example 203.0.113.0/24"))]
    pub allowed_cidrs: Vec<String>,
}

/// The volume for the owner's files.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceHome {
    /// Size in GiB. It can grow, but it cannot shrink.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1, max = 16384))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("sizeGiB cannot shrink: a volume only grows"))]
    pub size_gib: i32,
}

/// Status of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GpuDevWorkspaceStatus {
    /// Phase of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Explanation of the phase, unless it is `Ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Command to log in. It is not in `status.connectionDetails`, because Crossplane replaces the
    /// schema of that field in claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// Machine in a few words: the type of the EC2 instance, or number and flavor of the pods, for
    /// example `2 x gpu-large`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Id of the EC2 instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Type of the EC2 instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Market of the EC2 instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<InstanceCapacityType>,
    /// Availability zone of the EC2 instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Public IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// Machine image. The function chooses it from the catalogue once and then keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ChosenImage>,
    /// OpenCV release that the workspace has, for example `4.8.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencv_version: Option<String>,
    /// PyTorch release that the workspace has, for example `2.12.0`. Unset if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_version: Option<String>,
    /// Home volume. It is recorded here so that the function finds the volume again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeStatus>,
    /// Settings of the pods, for placement `Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<ChosenPods>,
    /// Status of each pod, for placement `Cluster`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeStatus>,
    /// SSH host keys of the workspace, for `known_hosts`.
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
}

/// The home volume of a workspace on EC2.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HomeStatus {
    /// Volume id in EC2.
    pub volume_id: String,
    /// Availability zone of the volume. The instance must run in the same zone.
    pub zone: String,
    /// Subnet of the first instance, in that zone. Unset in the default VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Id of the instance that the volume is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
    /// `SpotPool` that manages the volume. Unset if the volume is an `EBSVolume` of provider-aws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// Phase of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
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

/// The image chosen for this workspace, with all that its setup needs. A later change of the
/// catalogue does not affect it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenImage {
    /// AMI id.
    pub id: String,
    /// Name of the image in the catalogue.
    pub name: String,
    /// Python interpreter of the image from which machines make the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// OpenCV installation in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencv: Option<ImageOpencv>,
    /// PyTorch installation in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch: Option<ImagePytorch>,
    /// URL of a package index for PyTorch releases that are not in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_index_url: Option<String>,
}

fn default_instance_type() -> String {
    "g4dn.xlarge".into()
}

fn default_region() -> String {
    "us-east-1".into()
}
