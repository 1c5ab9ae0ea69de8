//! EC2's security groups.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, GroupRequest, TagKeys, Tags};
use provider_core::{Group, GroupRules};

use crate::error;

/// Security groups and their rules.
#[derive(Clone, Debug, Default)]
pub struct Firewall {
    /// All groups.
    pub groups: Vec<SecurityGroup>,
    /// Whether the VPC is the account's default one.
    pub is_default_vpc: bool,
    /// A counter from which groups and rules get their ids.
    created: usize,
}

/// The actual state of a security group. EC2's lists may not show it yet.
#[derive(Clone, Debug)]
pub struct SecurityGroup {
    /// Its id.
    pub id: String,
    /// Its name, which is unique within the VPC.
    pub name: String,
    /// Its VPC.
    pub vpc_id: String,
    /// Its present tags.
    pub tags: Tags,
    /// The time from which lists show it.
    pub listed_from: Timestamp,
    /// Its ingress rules by rule id.
    pub rules: BTreeMap<String, Rule>,
}

/// An ingress rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// SSH from a CIDR.
    Ssh(String),
    /// SSH from the members of a security group.
    SshFrom(String),
    /// All traffic between members of the group.
    Members,
    /// HTTP from everywhere. The provider never makes such a rule.
    Web,
}

impl SecurityGroup {
    /// The group as the crate `provider-aws` reads it; `None` if it lacks a pool's tag.
    pub fn read(&self, keys: &TagKeys) -> Option<Group> {
        let mut rules = GroupRules::default();
        let mut foreign_rule_ids = BTreeSet::new();
        for (id, rule) in &self.rules {
            match rule {
                Rule::Ssh(cidr) => drop(rules.ssh_cidrs.insert(cidr.clone())),
                Rule::SshFrom(group) => drop(rules.ssh_groups.insert(group.clone())),
                Rule::Members => rules.members = true,
                Rule::Web => drop(foreign_rule_ids.insert(id.clone())),
            }
        }
        Some(Group {
            id: self.id.clone(),
            pool_uid: self.tags.get(keys.pool_uid)?.clone(),
            vpc_id: self.vpc_id.clone(),
            rules,
            foreign_rule_ids,
        })
    }
}

impl Firewall {
    /// `CreateSecurityGroup`. Fails if the VPC has a group of this name. Names ignore case.
    pub fn create(
        &mut self,
        request: &GroupRequest,
        now: Timestamp,
        listed_after: SignedDuration,
    ) -> Result<String, Ec2Error> {
        let same = |g: &SecurityGroup| {
            g.vpc_id == request.vpc_id && g.name.eq_ignore_ascii_case(&request.name)
        };
        if self.groups.iter().any(same) {
            return Err(error("CreateSecurityGroup", "InvalidGroup.Duplicate"));
        }
        self.created += 1;
        let id = format!("sg-{}", self.created);
        self.groups.push(SecurityGroup {
            id: id.clone(),
            name: request.name.clone(),
            vpc_id: request.vpc_id.clone(),
            tags: request.tags.clone(),
            listed_from: now.saturating_add(listed_after).unwrap_or(Timestamp::MAX),
            rules: BTreeMap::new(),
        });
        Ok(id)
    }

    /// `AuthorizeSecurityGroupIngress`. Existing rules are no error here, because `provider-aws`
    /// ignores EC2's error about them.
    pub fn authorize(&mut self, id: &str, rules: &GroupRules) -> Result<(), Ec2Error> {
        self.existing("AuthorizeSecurityGroupIngress", id)?;
        for rule in each(rules) {
            self.widen(id, rule);
        }
        Ok(())
    }

    /// `RevokeSecurityGroupIngress`. An unknown rule id is an error. An unknown rule is one in a VPC
    /// that is not the account's default one; the default VPC's answer only lists it.
    pub fn revoke(
        &mut self,
        id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error> {
        const OPERATION: &str = "RevokeSecurityGroupIngress";
        let in_default_vpc = self.is_default_vpc;
        let group = self.existing(OPERATION, id)?;
        if rule_ids.iter().any(|id| !group.rules.contains_key(id)) {
            return Err(error(OPERATION, "InvalidSecurityGroupRuleId.NotFound"));
        }
        group.rules.retain(|id, _| !rule_ids.contains(id));
        for rule in each(rules) {
            if !in_default_vpc && !group.rules.values().any(|r| *r == rule) {
                return Err(error(OPERATION, "InvalidPermission.NotFound"));
            }
            group.rules.retain(|_, r| *r != rule);
        }
        Ok(())
    }

    /// Adds a rule to a group, unless the group has the rule or does not exist.
    pub fn widen(&mut self, id: &str, rule: Rule) {
        let rule = match rule {
            Rule::Ssh(cidr) => Rule::Ssh(canonical(&cidr)),
            other => other,
        };
        self.created += 1;
        let rule_id = format!("sgr-{:06}", self.created);
        let group = self.groups.iter_mut().find(|g| g.id == id);
        if let Some(group) = group
            && group.rules.values().all(|r| *r != rule)
        {
            group.rules.insert(rule_id, rule);
        }
    }

    /// `DeleteSecurityGroup`. Fails while an instance uses the group.
    pub fn delete(&mut self, id: &str, is_used: bool) -> Result<(), Ec2Error> {
        const OPERATION: &str = "DeleteSecurityGroup";
        self.existing(OPERATION, id)?;
        if is_used {
            return Err(error(OPERATION, "DependencyViolation"));
        }
        self.groups.retain(|g| g.id != id);
        Ok(())
    }

    fn existing(
        &mut self,
        operation: &'static str,
        id: &str,
    ) -> Result<&mut SecurityGroup, Ec2Error> {
        let found = self.groups.iter_mut().find(|g| g.id == id);
        found.ok_or_else(|| error(operation, "InvalidGroup.NotFound"))
    }
}

/// A network as EC2 stores and lists it: with the bits of the host cleared. Another text stays as it
/// is.
pub fn canonical(cidr: &str) -> String {
    let network: Result<ipnet::Ipv4Net, _> = cidr.parse();
    network.map_or_else(|_| cidr.to_owned(), |network| network.trunc().to_string())
}

fn each(rules: &GroupRules) -> Vec<Rule> {
    let ssh = rules.ssh_cidrs.iter().cloned().map(Rule::Ssh);
    let groups = rules.ssh_groups.iter().cloned().map(Rule::SshFrom);
    let members = rules.members.then_some(Rule::Members);
    ssh.chain(groups).chain(members).collect()
}
