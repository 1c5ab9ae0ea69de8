//! A workspace on EC2 as it is to be: policy, catalogue and claim put together.

use std::collections::BTreeMap;

use api::capacity::CapacityType;
use api::catalogue::Network;
use api::policy::WorkspacePolicy;
use api::workspace::ChosenImage;
use function_runtime::composite::{CompositeId, Origin};

/// A workspace on EC2 as it is to be.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Where the workspace lives.
    pub origin: Origin,
    /// The XR's name and UID.
    pub composite: CompositeId,
    /// Whose it is.
    pub owner: String,
    /// AWS region.
    pub region: String,
    /// The market: the claim's wish, or else the policy's.
    pub capacity_type: CapacityType,
    /// Most wanted first, never empty.
    pub instance_types: Vec<String>,
    /// What it boots.
    pub image: ChosenImage,
    /// cloud-init user data.
    pub user_data: String,
    /// Networks that may connect by SSH.
    pub ssh_cidrs: Vec<String>,
    /// The catalogue's network of the region.
    pub network: Network,
    /// Whether there is a home volume, or is to be one.
    pub has_home: bool,
    /// The claim's size of the home volume in GiB.
    pub home_size_gib: Option<i32>,
}

impl Resolved {
    /// The pool's market; none on demand.
    pub fn market(&self) -> Option<CapacityType> {
        match self.capacity_type {
            CapacityType::Spot | CapacityType::SpotWithFallback => Some(self.capacity_type),
            CapacityType::OnDemand => None,
        }
    }

    /// The type that an on-demand instance gets.
    pub fn instance_type(&self) -> &str {
        self.instance_types.first().map_or("", String::as_str)
    }

    /// The tags of everything in EC2. The provider adds its own.
    pub fn tags(&self, policy: &WorkspacePolicy) -> BTreeMap<String, String> {
        let mut tags = policy.instance.tags.clone();
        tags.insert("owner".into(), self.owner.clone());
        tags.insert("workspace".into(), self.origin.to_string());
        tags
    }
}
