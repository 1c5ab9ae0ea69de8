//! The calls that the controller may make to EC2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use provider_core::{
    Checks, Group, GroupRules, Instance, InstanceState, Launched, Market, Offering, Refusal,
    Volume, VolumeSnapshot,
};

use crate::Ec2Error;

/// EC2 tags by key.
pub type Tags = BTreeMap<String, String>;

/// The tag keys that identify a pool's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagKeys {
    /// Key of the tag with the control plane's identity.
    pub cluster: &'static str,
    /// Key of the tag with the pool's UID.
    pub pool_uid: &'static str,
    /// Key of the tag with the number of the launch.
    pub launch: &'static str,
    /// Key of the tag with the generation of the launch template.
    pub generation: &'static str,
    /// Key of the tag with the UID of the lease that has the instance.
    pub lease: &'static str,
    /// Key of the tag with the digest of the tags that the lease sets.
    pub lease_digest: &'static str,
    /// Prefix of the keys of the tags with public keys that may log in.
    pub authorized_key: &'static str,
    /// Key of the tag with the report of the instance's agent about its use.
    pub activity: &'static str,
    /// Key of the tag with the instance's SSH host key.
    pub host_key: &'static str,
    /// Key of the tag with the result of the instance's setup.
    pub setup: &'static str,
    /// Key of the tag with the number of a home volume or snapshot.
    pub home: &'static str,
    /// Key of the tag with the id of the volume that a home volume is a copy of.
    pub home_copy_of: &'static str,
    /// Key of the tag that marks a home volume as one that outlives its pool.
    pub home_kept: &'static str,
}

impl TagKeys {
    /// Those of an instance's tags that hold public keys, by tag key. Empty ones are left out.
    pub fn authorized_keys<'a>(&self, tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tags {
        tags.into_iter()
            .filter(|(key, value)| key.starts_with(self.authorized_key) && !value.is_empty())
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }
}

/// One region of EC2, with one set of credentials.
///
/// Every method is one logical operation: it fetches all pages, and the SDK repeats what is safe to
/// repeat.
#[async_trait]
pub trait Ec2: Send + Sync {
    /// Every instance with this control plane's tag, including terminated ones. An instance that
    /// has not changed is returned as the `Arc` in `known`.
    async fn instances(&self, known: &Known) -> Result<Vec<Arc<Instance>>, Ec2Error>;

    /// The instances of `ids` that exist and carry this control plane's tag, from a fresh describe.
    /// Ids that EC2 does not know are left out.
    async fn instances_by_id(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error>;

    /// The instances of `ids` that exist and carry this control plane's tag, from a fresh describe
    /// that names them. Ids that EC2 does not know are left out. While a zone is down, EC2 answers
    /// this call if all of the ids are in other zones, and fails every describe by a filter
    /// (`DescribeInstances` in the Amazon EC2 API Reference).
    async fn instances_named(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error>;

    /// The states of the instances with these ids, from a fresh describe. Instances without this
    /// control plane's tag are included. Ids that EC2 does not know are left out.
    async fn states(&self, ids: &[String]) -> Result<BTreeMap<String, InstanceState>, Ec2Error>;

    /// Every instance of one launch of a pool that EC2 lists.
    async fn instances_of_launch(
        &self,
        pool_uid: &str,
        launch: u64,
    ) -> Result<Vec<Instance>, Ec2Error>;

    /// The id of the account that the credentials belong to. AWS answers it without any
    /// permission, even where a policy denies it (STS, `GetCallerIdentity`).
    async fn account(&self) -> Result<String, Ec2Error>;

    /// The instances that fail EC2's status checks, and those with scheduled events. Instances of
    /// others are included.
    async fn checks(&self) -> Result<Checks, Ec2Error>;

    /// The spot prices of these types at this time, in US dollars per hour, by instance type and zone.
    async fn spot_prices(
        &self,
        types: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<(String, String), f64>, Ec2Error>;

    /// The last 64 KiB that an instance wrote to its console. Empty before EC2 has any output.
    async fn console(&self, id: &str) -> Result<Vec<u8>, Ec2Error>;

    /// Starts instances. The same token gives the same instances.
    async fn launch(&self, request: &LaunchRequest) -> Result<Answer, Ec2Error>;

    /// Creates a launch template, unless one of that name exists.
    async fn create_template(&self, request: &TemplateRequest) -> Result<(), Ec2Error>;

    /// Deletes a launch template of this control plane, if it exists.
    async fn delete_template(&self, name: &str) -> Result<(), Ec2Error>;

    /// Terminates instances, and returns EC2's error for each one that it did not terminate. One
    /// that is protected or gone keeps no other one running. If more have to end than EC2 grants,
    /// leased ones and dear ones end first. The caller checks ownership on a fresh describe.
    async fn terminate(&self, instances: &[Instance]) -> BTreeMap<String, Ec2Error>;

    /// Sets tags of an instance or a volume. The caller checks ownership.
    async fn tag(&self, id: &str, tags: &Tags) -> Result<(), Ec2Error>;

    /// Every home volume that carries this control plane's tag.
    async fn volumes(&self) -> Result<Vec<Volume>, Ec2Error>;

    /// The home volumes of one pool, from a fresh describe.
    async fn volumes_of(&self, pool_uid: &str) -> Result<Vec<Volume>, Ec2Error>;

    /// Creates an encrypted gp3 volume. The same token gives the same volume.
    async fn create_volume(&self, request: &VolumeRequest) -> Result<Volume, Ec2Error>;

    /// Attaches a volume. The caller checks ownership, and that no instance has the volume.
    async fn attach_volume(&self, volume_id: &str, instance_id: &str) -> Result<(), Ec2Error>;

    /// Makes a volume larger. The caller checks ownership.
    async fn grow_volume(&self, volume_id: &str, size_gib: u32) -> Result<(), Ec2Error>;

    /// Deletes a volume. The caller checks ownership on a fresh describe.
    async fn delete_volume(&self, volume_id: &str) -> Result<(), Ec2Error>;

    /// The snapshots of a pool's homes, from a fresh describe.
    async fn snapshots_of(&self, pool_uid: &str) -> Result<Vec<VolumeSnapshot>, Ec2Error>;

    /// Starts a snapshot. EC2 has no token for this: each call makes another snapshot.
    async fn create_snapshot(&self, request: &SnapshotRequest) -> Result<VolumeSnapshot, Ec2Error>;

    /// Deletes a snapshot. The caller checks ownership.
    async fn delete_snapshot(&self, snapshot_id: &str) -> Result<(), Ec2Error>;

    /// Every security group that carries this control plane's tag.
    async fn groups(&self) -> Result<Vec<Group>, Ec2Error>;

    /// Creates a security group without rules, and returns its id.
    async fn create_group(&self, request: &GroupRequest) -> Result<String, Ec2Error>;

    /// Adds ingress rules.
    async fn authorize(&self, group_id: &str, rules: &GroupRules) -> Result<(), Ec2Error>;

    /// Removes ingress rules: those of `rules`, and those with the given ids.
    async fn revoke(
        &self,
        group_id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error>;

    /// Deletes a security group.
    async fn delete_group(&self, group_id: &str) -> Result<(), Ec2Error>;

    /// The zones that offer each of `types`. A type that no zone offers is missing.
    async fn zones_by_type(
        &self,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error>;

    /// The machine image. `None` if this account cannot see it.
    async fn image(&self, id: &str) -> Result<Option<Image>, Ec2Error>;

    /// The subnets with these ids, or the default subnets of the region.
    async fn subnets(&self, ids: Option<&[String]>) -> Result<Vec<Subnet>, Ec2Error>;
}

/// The instances of an earlier list. Among thousands of instances hardly one changes between two
/// lists. Unchanged ones are kept instead of their new copies, so that memory is neither used twice
/// nor fragmented.
#[derive(Clone, Debug, Default)]
pub struct Known {
    by_id: Vec<Arc<Instance>>,
}

impl Known {
    /// Takes the instances of an earlier list.
    pub fn new(instances: impl Iterator<Item = Arc<Instance>>) -> Self {
        let mut by_id: Vec<_> = instances.collect();
        by_id.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Self { by_id }
    }

    /// The known instance if it is equal to `instance`; otherwise `instance` itself.
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
    /// When its owner deprecates it. EC2 launches a deprecated image, and shows it only to those who
    /// name its id.
    pub deprecated_at: Option<Timestamp>,
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

/// A request to start instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRequest {
    /// EC2's idempotency token.
    pub token: String,
    /// The launch template's name.
    pub template: String,
    /// The number of instances.
    pub count: u32,
    /// The market to buy on.
    pub market: Market,
    /// The types and zones that AWS may choose from, most preferred first.
    pub places: Vec<LaunchPlace>,
    /// Tags for the instances and their volumes. The launch itself sets them, so no instance ever
    /// exists without an owner.
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

/// EC2's answer to a launch that it accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The launched instances: fewer than requested if EC2 refused some.
    pub launched: Vec<Launched>,
    /// The refusals, by offering.
    pub refusals: Vec<(Offering, Refusal)>,
}

/// A launch template: the settings that its instances share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRequest {
    /// Unique in the region. The same name means the same content.
    pub name: String,
    /// Security groups, of the subnets' VPC.
    pub group_ids: Vec<String>,
    /// The image to boot.
    pub image: Image,
    /// cloud-init user data, not encoded.
    pub user_data: Option<String>,
    /// Root volume size in GiB; the image's own when unset.
    pub root_volume_size_gib: Option<i32>,
    /// The KMS key of the root volume; the account's key for EBS when unset.
    pub kms_key_id: Option<String>,
    /// Name of an IAM instance profile.
    pub iam_instance_profile: Option<String>,
    /// Whether instances can read their tags from the metadata service.
    pub shows_tags: bool,
    /// The template's own tags.
    pub tags: Tags,
}

/// A request for a home volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// EC2's idempotency token.
    pub token: String,
    /// The availability zone.
    pub zone: String,
    /// The size in GiB.
    pub size_gib: u32,
    /// The snapshot with the volume's first content. If unset, the volume is empty.
    pub snapshot_id: Option<String>,
    /// The KMS key of the volume; the account's key for EBS when unset.
    pub kms_key_id: Option<String>,
    /// The volume's tags. The creation itself sets them.
    pub tags: Tags,
}

/// A request for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// EC2's id of the volume.
    pub volume_id: String,
    /// A description for people.
    pub description: String,
    /// The snapshot's tags. The creation itself sets them.
    pub tags: Tags,
}

/// A request for a security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRequest {
    /// Unique within the VPC.
    pub name: String,
    /// A description for people.
    pub description: String,
    /// The VPC of the group.
    pub vpc_id: String,
    /// The group's tags. The creation itself sets them.
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
            authorized_keys: Tags::new(),
            activity: None,
            host_key: None,
            setup: None,
            offering: Offering {
                instance_type: "g4dn.xlarge".into(),
                zone: "us-east-1a".into(),
                market: Market::Spot,
            },
            image_id: "ami-1".into(),
            state,
            state_reason: None,
            state_message: None,
            public_ip: None,
            private_ip: None,
            launched_at: None,
        }
    }

    #[test]
    fn unchanged_instances_are_kept_once_and_changed_ones_are_seen() {
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
