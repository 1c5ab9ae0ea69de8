//! The resources in EC2 that belong to the pool under test.

use std::cell::Cell;
use std::slice::Iter;

use memory_ec2::{Cloud, Copy, Disk, Firewall, Machine, SecurityGroup};
use provider_aws::{Subnet, Tags};

use crate::regions::TAG_KEYS;

pub const VPC: &str = "vpc-1";
pub const CLUSTER: &str = "cluster-uid";
/// The account of the pool under test.
pub const ACCOUNT: &str = "111111111111";
pub const POOL_UID: &str = "pool-uid";

thread_local! {
    /// The UID of the pool under test. Each simulation runs in one thread.
    static UNDER_TEST: Cell<&'static str> = const { Cell::new(POOL_UID) };
}

/// Puts another pool under test. Returns the UID of the one before.
pub fn put_under_test(uid: &'static str) -> &'static str {
    UNDER_TEST.replace(uid)
}

/// A resource with tags.
pub trait Tagged {
    fn tags(&self) -> &Tags;

    /// Whether it has the tags of the pool under test.
    fn is_ours(&self) -> bool {
        is_ours(self.tags())
    }
}

impl Tagged for Machine {
    fn tags(&self) -> &Tags {
        &self.tags
    }
}

impl Tagged for SecurityGroup {
    fn tags(&self) -> &Tags {
        &self.tags
    }
}

impl Tagged for Disk {
    fn tags(&self) -> &Tags {
        &self.tags
    }
}

impl Tagged for Copy {
    fn tags(&self) -> &Tags {
        &self.tags
    }
}

/// A collection of tagged resources.
pub trait Collection {
    type Item: Tagged;

    fn all(&self) -> Iter<'_, Self::Item>;

    /// Those of the pool under test, including ended ones.
    fn ours(&self) -> impl Iterator<Item = &Self::Item> {
        self.all().filter(|item| item.is_ours())
    }
}

impl Collection for Cloud {
    type Item = Machine;

    fn all(&self) -> Iter<'_, Machine> {
        self.machines.iter()
    }
}

impl Collection for Firewall {
    type Item = SecurityGroup;

    fn all(&self) -> Iter<'_, SecurityGroup> {
        self.groups.iter()
    }
}

/// The instances of a region.
pub trait Instances {
    /// Live instances of the pool under test.
    fn live(&self) -> Vec<&Machine>;

    /// An existing instance.
    fn machine(&mut self, id: &str) -> &mut Machine;
}

impl Instances for Cloud {
    fn live(&self) -> Vec<&Machine> {
        self.ours().filter(|m| m.is_live()).collect()
    }

    fn machine(&mut self, id: &str) -> &mut Machine {
        self.find(id).unwrap()
    }
}

/// An instance of a launch.
pub trait OfLaunch {
    /// The number of the launch, from the instance's tags.
    fn launch(&self) -> i64;
}

impl OfLaunch for Machine {
    fn launch(&self) -> i64 {
        self.tags[TAG_KEYS.launch].parse().unwrap()
    }
}

pub fn is_ours(tags: &Tags) -> bool {
    let is = |key: &str, value: &str| tags.get(key).is_some_and(|v| v == value);
    is(TAG_KEYS.cluster, CLUSTER) && is(TAG_KEYS.pool_uid, UNDER_TEST.get())
}

pub fn subnets() -> Vec<Subnet> {
    ["us-east-1a", "us-east-1b"]
        .map(|zone| Subnet {
            id: format!("subnet-{zone}"),
            zone: zone.into(),
            vpc_id: VPC.into(),
        })
        .into()
}

/// Whether a resource has the tag of the control plane under test.
pub fn is_of_cluster(tags: &Tags) -> bool {
    tags.get(TAG_KEYS.cluster).is_some_and(|v| v == CLUSTER)
}
