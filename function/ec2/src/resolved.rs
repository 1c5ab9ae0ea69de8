//! The resolved workspace on EC2: policy, catalogue and claim combined.

use std::collections::BTreeMap;

use api::capacity::CapacityType;
use api::catalogue::Network;
use api::policy::{OnDemandProvider, WorkspacePolicy};
use api::workspace::{ChosenImage, InstanceChoice};
use function_runtime::composite::{CompositeId, Origin};

/// A resolved workspace on EC2.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Namespace and name of the workspace.
    pub origin: Origin,
    /// Name and UID of the composite.
    pub composite: CompositeId,
    /// The owner of the workspace.
    pub owner: String,
    /// AWS region.
    pub region: String,
    /// The market: that of the claim, or else that of the policy.
    pub capacity_type: CapacityType,
    /// The provider of an on-demand workspace.
    pub on_demand: OnDemandProvider,
    /// Instance types in order of preference, never empty.
    pub instance_types: Vec<String>,
    /// The image.
    pub image: ChosenImage,
    /// Whether claim or flavor names the image, so that a machine of another image is replaced.
    pub is_image_named: bool,
    /// The size of the root volume in GiB; none for the size in the image.
    pub root_volume_size_gib: Option<i32>,
    /// The IAM instance profile of the next instance; none without one.
    pub instance_profile: Option<String>,
    /// The choice that the workspace keeps while it runs; none if the claim names the types itself.
    pub choice: Option<InstanceChoice>,
    /// The `OpenCV` release of the workspace.
    pub opencv: String,
    /// The `PyTorch` release of the workspace; none if it has none.
    pub pytorch: Option<String>,
    /// cloud-init user data.
    pub user_data: String,
    /// The public keys that the instance reads from its tags, without comments; none if all keys
    /// are in the user data.
    pub keys_in_tags: Option<Vec<String>>,
    /// Networks that may connect by SSH.
    pub ssh_cidrs: Vec<String>,
    /// The security group of the bastion, which may connect by SSH; none without one.
    pub bastion_group: Option<String>,
    /// The network in the catalogue for the region.
    pub network: Network,
    /// Whether the workspace has a home volume, or is to have one.
    pub has_home: bool,
    /// The size of the home in the claim, in GiB; none if the claim has no home.
    pub home_size_gib: Option<i32>,
}

impl Resolved {
    /// The market of the pool; none for a workspace of provider-aws.
    pub fn market(&self) -> Option<CapacityType> {
        let is_of_aws = is_of_provider_aws(self.capacity_type, self.on_demand);
        (!is_of_aws).then_some(self.capacity_type)
    }

    /// The type of an instance of provider-aws.
    pub fn instance_type(&self) -> &str {
        self.instance_types.first().map_or("", String::as_str)
    }

    /// The tags of all EC2 resources. The provider adds its own tags.
    pub fn tags(&self, policy: &WorkspacePolicy) -> BTreeMap<String, String> {
        let mut tags = policy.instance.tags.clone();
        tags.insert("owner".into(), self.owner.clone());
        tags.insert("workspace".into(), self.origin.to_string());
        tags
    }
}

/// Whether provider-aws makes the instance of a workspace in this market.
pub fn is_of_provider_aws(market: CapacityType, on_demand: OnDemandProvider) -> bool {
    market == CapacityType::OnDemand && on_demand == OnDemandProvider::ProviderAws
}
