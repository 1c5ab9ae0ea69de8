//! The security group that the provider owns for a pool.

use std::collections::BTreeSet;

/// The ingress rules of the group. All egress is allowed, which is EC2's default for a new group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRules {
    /// IPv4 networks that may connect to port 22.
    pub ssh_cidrs: BTreeSet<String>,
    /// EC2's ids of the security groups whose members may connect to port 22.
    pub ssh_groups: BTreeSet<String>,
    /// Whether members of the group reach each other on every port.
    pub members: bool,
}

impl GroupRules {
    /// The rules of `self` that `other` lacks.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self {
            ssh_cidrs: &self.ssh_cidrs - &other.ssh_cidrs,
            ssh_groups: &self.ssh_groups - &other.ssh_groups,
            members: self.members && !other.members,
        }
    }

    /// Whether no rule lets anything in.
    pub fn is_empty(&self) -> bool {
        self.ssh_cidrs.is_empty() && self.ssh_groups.is_empty() && !self.members
    }
}

/// The group as EC2 reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// EC2's id.
    pub id: String,
    /// UID of the pool, from its tag.
    pub pool_uid: String,
    /// The VPC it belongs to.
    pub vpc_id: String,
    /// The rules that the provider manages.
    pub rules: GroupRules,
    /// EC2's ids (`sgr-…`) of the ingress rules that the provider did not make: a person widened
    /// the group.
    pub foreign_rule_ids: BTreeSet<String>,
}
