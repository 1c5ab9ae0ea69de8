//! `GpuDevWorkspace`: what a developer asks for, and what comes back.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::{CapacityType, InstanceCapacityType};
use crate::catalogue::ImagePytorch;
use crate::cluster::{
    ChosenPods, Distributed, FlavorOverrides, NodeStatus, QueueStatus, WorkspaceQueue,
};
use crate::cost::CostStatus;
use crate::lifecycle::{ActivityStatus, LifecycleStatus, WorkspaceLifecycle};

/// An OpenSSH public key: type, base64 and perhaps a comment.
pub(crate) const PUBLIC_KEY: &str = r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [A-Za-z0-9@._+-]+)?$";

/// A GPU machine for one developer.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "GpuDevWorkspace",
    plural = "gpudevworkspaces",
    status = "GpuDevWorkspaceStatus"
)]
pub struct GpuDevWorkspaceSpec {
    /// What the developer asks for.
    pub parameters: WorkspaceParameters,
}

/// What the developer asks for. Only `owner` is required.
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
    /// Whose workspace it is: lower-case letters, digits, `.`, `_` and `-`.
    #[schemars(
        length(max = 63),
        regex(pattern = r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$")
    )]
    pub owner: String,
    /// EC2 instance type, most wanted first choice.
    #[serde(default = "default_instance_type")]
    #[schemars(length(max = 32), regex(pattern = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"))]
    pub instance_type: String,
    /// Further types that serve as well, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(max = 32), regex(pattern = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"))
    )]
    pub instance_types: Vec<String>,
    /// AWS region. Immutable: an instance cannot move.
    #[serde(default = "default_region")]
    #[schemars(length(max = 32), regex(pattern = r"^[a-z]{2}(-[a-z]+)+-[0-9]$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region is immutable: delete the claim and create another"))]
    pub region: String,
    /// OpenCV release, for example `4.8.0`. Unset: 4.8.0 on EC2, the flavor's in
    /// the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 32),
        regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+(\.[0-9]+)?$")
    )]
    pub opencv_version: Option<String>,
    /// PyTorch release; the image's own when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub pytorch_version: Option<String>,
    /// Where the workspace runs. Immutable: a home cannot move.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("placement is immutable: delete the claim and create another"))]
    pub placement: Placement,
    /// Which market the instance comes from; the policy's default when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
    /// Who may log in, and from where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<WorkspaceSsh>,
    /// A volume of its own for the owner's files, which outlives instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<WorkspaceHome>,
    /// In the cluster: the WorkspaceFlavor; the policy's default when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub flavor: Option<String>,
    /// In the cluster: what it changes of its flavor, as far as that lets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<FlavorOverrides>,
    /// In the cluster: several nodes for one `torchrun`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<Distributed>,
    /// In the cluster: where it waits for quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<WorkspaceQueue>,
    /// Whether it runs, and how long.
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

/// Who may log in, and from where.
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
    /// IPv4 networks that may connect. None: the policy's, and without those
    /// nobody can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        inner(regex(pattern = r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$"))
    )]
    pub allowed_cidrs: Vec<String>,
}

/// The volume for the owner's files.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceHome {
    /// Its size in GiB. It can grow and never shrink.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1, max = 16384))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("sizeGiB cannot shrink: a volume only grows"))]
    pub size_gib: i32,
}

/// What came of it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GpuDevWorkspaceStatus {
    /// Where the workspace stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Why it stands there, when it is not `Ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The command that logs in. (`status.connectionDetails` of a claim belongs
    /// to Crossplane, which overrides its schema.)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// EC2's instance id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// The type that was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The market that granted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<InstanceCapacityType>,
    /// The availability zone it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Public IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// The image, chosen once from the catalogue and then kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ChosenImage>,
    /// The home volume, recorded so that it is found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeStatus>,
    /// In the cluster: what its pods are made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<ChosenPods>,
    /// In the cluster: its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeStatus>,
    /// Its SSH host keys, for `known_hosts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_keys: Vec<String>,
    /// How it stands in its queue, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// When it started, stops, or was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<LifecycleStatus>,
    /// Who uses it, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityStatus>,
    /// What it costs, where the catalogue has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostStatus>,
}

/// Where a workspace's home volume is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HomeStatus {
    /// EC2's volume id.
    pub volume_id: String,
    /// The availability zone that the volume, and so the instance, is in.
    pub zone: String,
    /// The subnet of that zone in which its first instance was; none in the
    /// default VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// The instance that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
    /// The `SpotPool` that keeps it; none where it is an `EBSVolume` of provider-aws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// Where a workspace stands.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// On its way.
    Provisioning,
    /// One can log in.
    Ready,
    /// It cannot run; `message` says why.
    Failed,
    /// Its instance was lost; another one is on its way.
    Interrupted,
    /// It waits for quota, or for room in its owner's budget.
    Queued,
    /// It ends, or is turned off.
    Stopping,
    /// It does not run, since its claim says so or nobody used it; its home is kept.
    Stopped,
    /// It ran as long as it may; its home is kept.
    Expired,
}

/// An image of the catalogue, as chosen for this workspace: with all that its
/// setup needs, so that a catalogue that moves on changes nothing for it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenImage {
    /// AMI id.
    pub id: String,
    /// Its key in the catalogue.
    pub name: String,
    /// PyTorch as the image brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch: Option<ImagePytorch>,
    /// Package index for PyTorch releases that the image does not bring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_index_url: Option<String>,
}

fn default_instance_type() -> String {
    "g4dn.xlarge".into()
}

fn default_region() -> String {
    "us-east-1".into()
}
