//! What the controller may ask of EC2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use provider_core::{
    Group, GroupRules, Instance, Launched, Market, Offering, Refusal, Volume, VolumeSnapshot,
};

use crate::Ec2Error;

/// EC2 tags by key.
pub type Tags = BTreeMap<String, String>;

/// The tag keys by which a pool's resources are recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagKeys {
    /// Holds the control plane's identity.
    pub cluster: &'static str,
    /// Holds the pool's UID.
    pub pool_uid: &'static str,
    /// Holds the launch's number.
    pub launch: &'static str,
    /// Holds the launch template's generation.
    pub generation: &'static str,
    /// Holds the UID of the lease that has the instance.
    pub lease: &'static str,
    /// Holds the digest of what the lease has it tagged with.
    pub lease_digest: &'static str,
    /// Holds what the instance's agent says of its use.
    pub activity: &'static str,
    /// Holds the instance's SSH host key.
    pub host_key: &'static str,
    /// Holds a home volume's number, or a snapshot's.
    pub home: &'static str,
    /// Holds the volume that a home volume is a copy of.
    pub home_copy_of: &'static str,
    /// Marks a home volume that outlives its pool.
    pub home_kept: &'static str,
}

/// One region of EC2, seen with one set of credentials.
///
/// Every method is one logical operation: pages are fetched to their end, and
/// the SDK repeats what is safe to repeat.
#[async_trait]
pub trait Ec2: Send + Sync {
    /// Every instance that carries this control plane's tag, dead ones too. Those
    /// that are as they were are the known ones.
    async fn instances(&self, known: &Known) -> Result<Vec<Arc<Instance>>, Ec2Error>;

    /// Those of `ids` that exist and carry this control plane's tag, as of now.
    /// Ids that EC2 does not know are left out.
    async fn instances_by_id(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error>;

    /// Every instance of one launch of a pool that EC2 lists.
    async fn instances_of_launch(
        &self,
        pool_uid: &str,
        launch: u64,
    ) -> Result<Vec<Instance>, Ec2Error>;

    /// Those that fail EC2's status checks, of the instance or of its host, by id;
    /// instances of others among them.
    async fn impaired(&self) -> Result<BTreeSet<String>, Ec2Error>;

    /// Starts instances. The same token gives the same instances.
    async fn launch(&self, request: &LaunchRequest) -> Result<Answer, Ec2Error>;

    /// Creates a launch template, unless there is one of that name.
    async fn create_template(&self, request: &TemplateRequest) -> Result<(), Ec2Error>;

    /// Deletes a launch template of this control plane, if there is one.
    async fn delete_template(&self, name: &str) -> Result<(), Ec2Error>;

    /// Terminates instances. Callers check ownership on a fresh describe.
    async fn terminate(&self, ids: &[String]) -> Result<(), Ec2Error>;

    /// Sets tags of an instance or a volume. Callers check ownership.
    async fn tag(&self, id: &str, tags: &Tags) -> Result<(), Ec2Error>;

    /// Every home volume that carries this control plane's tag.
    async fn volumes(&self) -> Result<Vec<Volume>, Ec2Error>;

    /// The home volumes of one pool, as of now.
    async fn volumes_of(&self, pool_uid: &str) -> Result<Vec<Volume>, Ec2Error>;

    /// Makes an encrypted gp3 volume. The same token gives the same volume.
    async fn create_volume(&self, request: &VolumeRequest) -> Result<Volume, Ec2Error>;

    /// Attaches a volume. Callers check ownership and that nothing has it.
    async fn attach_volume(&self, volume_id: &str, instance_id: &str) -> Result<(), Ec2Error>;

    /// Makes a volume larger. Callers check ownership.
    async fn grow_volume(&self, volume_id: &str, size_gib: u32) -> Result<(), Ec2Error>;

    /// Deletes a volume. Callers check ownership on a fresh describe.
    async fn delete_volume(&self, volume_id: &str) -> Result<(), Ec2Error>;

    /// The snapshots of a pool's homes, as of now.
    async fn snapshots_of(&self, pool_uid: &str) -> Result<Vec<VolumeSnapshot>, Ec2Error>;

    /// Begins a snapshot. EC2 has no token for it: each call makes another one.
    async fn create_snapshot(&self, request: &SnapshotRequest) -> Result<VolumeSnapshot, Ec2Error>;

    /// Deletes a snapshot. Callers check ownership.
    async fn delete_snapshot(&self, snapshot_id: &str) -> Result<(), Ec2Error>;

    /// Every security group that carries this control plane's tag.
    async fn groups(&self) -> Result<Vec<Group>, Ec2Error>;

    /// Creates a security group without rules and answers its id.
    async fn create_group(&self, request: &GroupRequest) -> Result<String, Ec2Error>;

    /// Adds ingress rules.
    async fn authorize(&self, group_id: &str, rules: &GroupRules) -> Result<(), Ec2Error>;

    /// Takes ingress rules away, those of `rules` and those of the given ids.
    async fn revoke(
        &self,
        group_id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error>;

    /// Deletes a security group.
    async fn delete_group(&self, group_id: &str) -> Result<(), Ec2Error>;

    /// The zones that offer each of `types`; a type that no zone offers is
    /// missing.
    async fn zones_by_type(
        &self,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error>;

    /// The machine image, where this account can see it.
    async fn image(&self, id: &str) -> Result<Option<Image>, Ec2Error>;

    /// The subnets of these ids, or the default subnets of the region.
    async fn subnets(&self, ids: Option<&[String]>) -> Result<Vec<Subnet>, Ec2Error>;
}

/// What an earlier list showed. Of thousands of instances hardly one differs from
/// one list to the next: those that do not are kept instead of their copies, so that
/// memory is neither needed twice nor scattered.
#[derive(Clone, Debug, Default)]
pub struct Known {
    by_id: Vec<Arc<Instance>>,
}

impl Known {
    /// Knows these.
    pub fn new(instances: impl Iterator<Item = Arc<Instance>>) -> Self {
        let mut by_id: Vec<_> = instances.collect();
        by_id.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Self { by_id }
    }

    /// The known one, if it is the same.
    pub fn share(&self, instance: Instance) -> Arc<Instance> {
        let found = self
            .by_id
            .binary_search_by(|known| known.id.cmp(&instance.id));
        let known = found.ok().and_then(|at| self.by_id.get(at));
        match known {
            Some(known) if **known == instance => known.clone(),
            _ => Arc::new(instance),
        }
    }
}

/// A machine image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// AMI id.
    pub id: String,
    /// The device name of its root volume, for example `/dev/sda1`.
    pub root_device: String,
}

/// A subnet to launch into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// EC2's id.
    pub id: String,
    /// Its availability zone.
    pub zone: String,
    /// Its VPC.
    pub vpc_id: String,
}

/// Instances to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRequest {
    /// EC2's idempotency token.
    pub token: String,
    /// The launch template's name.
    pub template: String,
    /// How many.
    pub count: u32,
    /// Which market.
    pub market: Market,
    /// What AWS may choose from, most wanted first.
    pub places: Vec<LaunchPlace>,
    /// Tags for the instances and their volumes, set by the launch itself: there
    /// is no moment in which an instance exists and nobody owns it.
    pub tags: Tags,
}

/// A type in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPlace {
    /// Instance type.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
    /// The subnet, in that zone.
    pub subnet_id: String,
}

/// What came of a launch that EC2 accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The instances; fewer than asked for where some were refused.
    pub launched: Vec<Launched>,
    /// What was refused, by offering.
    pub refusals: Vec<(Offering, Refusal)>,
}

/// A launch template: what instances have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRequest {
    /// Unique in the region; the same name is the same content.
    pub name: String,
    /// Security groups, of the subnets' VPC.
    pub group_ids: Vec<String>,
    /// The image to boot.
    pub image: Image,
    /// cloud-init user data, not encoded.
    pub user_data: Option<String>,
    /// Root volume size in GiB; the image's own when unset.
    pub root_volume_size_gib: Option<i32>,
    /// Name of an IAM instance profile.
    pub iam_instance_profile: Option<String>,
    /// Whether instances can read their tags at the metadata service.
    pub shows_tags: bool,
    /// The template's own tags.
    pub tags: Tags,
}

/// A home volume to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// EC2's idempotency token.
    pub token: String,
    /// Where.
    pub zone: String,
    /// How large.
    pub size_gib: u32,
    /// What is in it at first; nothing when unset.
    pub snapshot_id: Option<String>,
    /// Set by the creation itself.
    pub tags: Tags,
}

/// A snapshot to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// Of what.
    pub volume_id: String,
    /// For people.
    pub description: String,
    /// Set by the creation itself.
    pub tags: Tags,
}

/// A security group to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRequest {
    /// Unique within the VPC.
    pub name: String,
    /// For people.
    pub description: String,
    /// Where.
    pub vpc_id: String,
    /// Set by the creation itself.
    pub tags: Tags,
}

#[cfg(test)]
mod tests {
    use provider_core::InstanceState;

    use super::*;

    fn instance(id: &str, state: InstanceState) -> Instance {
        Instance {
            id: id.into(),
            pool_uid: "uid".into(),
            launch: 1,
            generation: None,
            lease: None,
            lease_digest: None,
            activity: None,
            host_key: None,
            offering: Offering {
                instance_type: "g4dn.xlarge".into(),
                zone: "us-east-1a".into(),
                market: Market::Spot,
            },
            image_id: "ami-1".into(),
            state,
            state_reason: None,
            public_ip: None,
            private_ip: None,
            launched_at: None,
        }
    }

    #[test]
    fn what_did_not_change_is_held_once_and_what_did_is_seen() {
        let ids = ["i-3", "i-1", "i-2"];
        let before = ids.map(|id| Arc::new(instance(id, InstanceState::Pending)));
        let known = Known::new(before.iter().cloned());
        for one in &before {
            let again = known.share(instance(&one.id, InstanceState::Pending));
            assert!(Arc::ptr_eq(&again, one));
            let runs = known.share(instance(&one.id, InstanceState::Running));
            assert_eq!(runs.state, InstanceState::Running);
        }
        let new = known.share(instance("i-4", InstanceState::Pending));
        assert_eq!(new.id, "i-4");
    }
}
