//! EC2's security groups.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, GroupRequest, Tags};
use provider_core::{Group, GroupRules};

use super::cloud::is_ours;
use super::faults::error;
use crate::regions::TAG_KEYS;

/// Security groups and their rules.
#[derive(Clone, Debug, Default)]
pub struct Firewall {
    pub groups: Vec<SecurityGroup>,
    created: usize,
}

/// A group as it is, whoever sees it.
#[derive(Clone, Debug)]
pub struct SecurityGroup {
    pub id: String,
    pub name: String,
    pub vpc_id: String,
    pub tags: Tags,
    pub listed_from: Timestamp,
    /// Ingress by rule id.
    pub rules: BTreeMap<String, Rule>,
}

/// An ingress rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    Ssh(String),
    Members,
    /// Something that the provider never makes.
    Web,
}

impl SecurityGroup {
    pub fn is_ours(&self) -> bool {
        is_ours(&self.tags)
    }

    /// As provider-aws reads it.
    pub fn read(&self) -> Option<Group> {
        let mut rules = GroupRules::default();
        let mut foreign_rule_ids = BTreeSet::new();
        for (id, rule) in &self.rules {
            match rule {
                Rule::Ssh(cidr) => drop(rules.ssh_cidrs.insert(cidr.clone())),
                Rule::Members => rules.members = true,
                Rule::Web => drop(foreign_rule_ids.insert(id.clone())),
            }
        }
        Some(Group {
            id: self.id.clone(),
            pool_uid: self.tags.get(TAG_KEYS.pool_uid)?.clone(),
            vpc_id: self.vpc_id.clone(),
            rules,
            foreign_rule_ids,
        })
    }
}

impl Firewall {
    /// Groups of the pool under test.
    pub fn ours(&self) -> impl Iterator<Item = &SecurityGroup> {
        self.groups.iter().filter(|g| g.is_ours())
    }

    /// `CreateSecurityGroup`: a name is unique within its VPC.
    pub fn create(
        &mut self,
        request: &GroupRequest,
        now: Timestamp,
        listed_after: SignedDuration,
    ) -> Result<String, Ec2Error> {
        let same = |g: &SecurityGroup| (&g.name, &g.vpc_id) == (&request.name, &request.vpc_id);
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
            listed_from: now.saturating_add(listed_after).unwrap(),
            rules: BTreeMap::new(),
        });
        Ok(id)
    }

    /// Rules that exist already stay, as provider-aws has it.
    pub fn authorize(&mut self, id: &str, rules: &GroupRules) -> Result<(), Ec2Error> {
        let group = self.existing("AuthorizeSecurityGroupIngress", id)?;
        for rule in each(rules) {
            if !group.rules.values().any(|r| *r == rule) {
                group.add(rule);
            }
        }
        Ok(())
    }

    /// A rule that does not exist is an error.
    pub fn revoke(
        &mut self,
        id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error> {
        const OPERATION: &str = "RevokeSecurityGroupIngress";
        let group = self.existing(OPERATION, id)?;
        if rule_ids.iter().any(|id| !group.rules.contains_key(id)) {
            return Err(error(OPERATION, "InvalidSecurityGroupRuleId.NotFound"));
        }
        group.rules.retain(|id, _| !rule_ids.contains(id));
        for rule in each(rules) {
            if !group.rules.values().any(|r| *r == rule) {
                return Err(error(OPERATION, "InvalidPermission.NotFound"));
            }
            group.rules.retain(|_, r| *r != rule);
        }
        Ok(())
    }

    /// Somebody widens the group by hand.
    pub fn widen(&mut self, id: &str, rule: Rule) {
        let group = self.groups.iter_mut().find(|g| g.id == id).unwrap();
        if !group.rules.values().any(|r| *r == rule) {
            group.add(rule);
        }
    }

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

impl SecurityGroup {
    fn add(&mut self, rule: Rule) {
        let highest = self.rules.keys().next_back();
        let number = highest.map_or(0, |id| id[4..].parse::<usize>().unwrap() + 1);
        self.rules.insert(format!("sgr-{number:06}"), rule);
    }
}

fn each(rules: &GroupRules) -> Vec<Rule> {
    let ssh = rules.ssh_cidrs.iter().cloned().map(Rule::Ssh);
    ssh.chain(rules.members.then_some(Rule::Members)).collect()
}
