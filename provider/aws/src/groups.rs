//! Security groups of pools, and their rules.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{
    IpPermission, IpRange, ResourceType, SecurityGroup, SecurityGroupRule, UserIdGroupPair,
};
use provider_core::{Group, GroupRules};

use crate::tagging::{filter, tag_specification, tag_value};
use crate::{AwsEc2, Ec2Error, GroupRequest};

/// The largest page that EC2 allows.
const PAGE: i32 = 1000;
/// The most values that EC2 allows in one filter.
const FILTER_VALUES: usize = 200;
const SSH: i32 = 22;
/// EC2's name for all protocols.
const ALL: &str = "-1";

impl AwsEc2 {
    pub(crate) async fn list_groups(&self) -> Result<Vec<Group>, Ec2Error> {
        let mut pages = self
            .client
            .describe_security_groups()
            .filters(self.ours())
            .into_paginator()
            .page_size(PAGE)
            .send();
        let mut listed = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| Ec2Error::of("DescribeSecurityGroups", &e))?;
            listed.extend(page.security_groups.unwrap_or_default());
        }
        // The ids of rules are needed only for groups with rules to revoke.
        let widened = listed.iter().filter(|group| !is_own(group));
        let ids: Vec<String> = widened
            .filter_map(|g| g.group_id().map(Into::into))
            .collect();
        let rules = self.ingress_by_group(&ids).await?;
        let pool_uid = self.keys.pool_uid;
        Ok(listed
            .iter()
            .filter_map(|g| read(g, pool_uid, &rules))
            .collect())
    }

    async fn ingress_by_group(
        &self,
        ids: &[String],
    ) -> Result<BTreeMap<String, Vec<SecurityGroupRule>>, Ec2Error> {
        let mut by_group: BTreeMap<String, Vec<SecurityGroupRule>> = BTreeMap::new();
        for some in ids.chunks(FILTER_VALUES) {
            let mut pages = self
                .client
                .describe_security_group_rules()
                .filters(filter("group-id", some.to_vec()))
                .into_paginator()
                .page_size(PAGE)
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|e| Ec2Error::of("DescribeSecurityGroupRules", &e))?;
                for rule in page.security_group_rules.unwrap_or_default() {
                    if let (Some(group), Some(false)) = (rule.group_id(), rule.is_egress()) {
                        by_group.entry(group.to_owned()).or_default().push(rule);
                    }
                }
            }
        }
        Ok(by_group)
    }

    pub(crate) async fn create_security_group(
        &self,
        request: &GroupRequest,
    ) -> Result<String, Ec2Error> {
        const OPERATION: &str = "CreateSecurityGroup";
        let answer = self
            .client
            .create_security_group()
            .group_name(&request.name)
            .description(&request.description)
            .vpc_id(&request.vpc_id)
            .tag_specifications(tag_specification(
                ResourceType::SecurityGroup,
                &request.tags,
            ))
            .send()
            .await
            .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        answer
            .group_id
            .ok_or_else(|| Ec2Error::malformed(OPERATION, "group id"))
    }

    pub(crate) async fn authorize_ingress(
        &self,
        group_id: &str,
        rules: &GroupRules,
    ) -> Result<(), Ec2Error> {
        let permissions = permissions(group_id, rules);
        if permissions.is_empty() {
            return Ok(());
        }
        match self.authorize(group_id, permissions.clone()).await {
            Err(error) if error.is_duplicate() => {}
            answer => return answer,
        }
        // EC2 refuses the whole call if one of its rules exists already.
        for permission in permissions {
            match self.authorize(group_id, vec![permission]).await {
                Err(error) if !error.is_duplicate() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn authorize(
        &self,
        group_id: &str,
        permissions: Vec<IpPermission>,
    ) -> Result<(), Ec2Error> {
        self.client
            .authorize_security_group_ingress()
            .group_id(group_id)
            .set_ip_permissions(Some(permissions))
            .send()
            .await
            .map_err(|e| Ec2Error::of("AuthorizeSecurityGroupIngress", &e))?;
        Ok(())
    }

    pub(crate) async fn revoke_ingress(
        &self,
        group_id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error> {
        const OPERATION: &str = "RevokeSecurityGroupIngress";
        if !rule_ids.is_empty() {
            self.client
                .revoke_security_group_ingress()
                .group_id(group_id)
                .set_security_group_rule_ids(Some(rule_ids.iter().cloned().collect()))
                .send()
                .await
                .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        }
        for permission in permissions(group_id, rules) {
            self.client
                .revoke_security_group_ingress()
                .group_id(group_id)
                .ip_permissions(permission)
                .send()
                .await
                .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        }
        Ok(())
    }
}

fn read(
    group: &SecurityGroup,
    pool_uid: &str,
    rules: &BTreeMap<String, Vec<SecurityGroupRule>>,
) -> Option<Group> {
    let id = group.group_id()?.to_owned();
    let mut found = Group {
        pool_uid: tag_value(group.tags(), pool_uid)?.to_owned(),
        vpc_id: group.vpc_id()?.to_owned(),
        rules: GroupRules::default(),
        foreign_rule_ids: BTreeSet::new(),
        id,
    };
    for permission in group.ip_permissions() {
        found.rules.ssh_cidrs.extend(ssh_cidrs(permission));
        found.rules.members |= has_members(permission, &found.id);
    }
    for rule in rules.get(&found.id).into_iter().flatten() {
        if is_foreign(rule, &found.id) {
            let id = rule.security_group_rule_id();
            found.foreign_rule_ids.extend(id.map(Into::into));
        }
    }
    Some(found)
}

/// Whether a group has only rules of the two kinds that the provider makes.
fn is_own(group: &SecurityGroup) -> bool {
    let id = group.group_id().unwrap_or_default();
    group.ip_permissions().iter().all(|permission| {
        let cidrs = permission.ip_ranges().len();
        let groups = permission.user_id_group_pairs();
        let own_cidrs = ssh_cidrs(permission).count();
        let own_groups = usize::from(has_members(permission, id));
        permission.ipv6_ranges().is_empty()
            && permission.prefix_list_ids().is_empty()
            && (cidrs, groups.len()) == (own_cidrs, own_groups)
    })
}

/// The networks of an SSH rule. Empty for any other rule.
fn ssh_cidrs(permission: &IpPermission) -> impl Iterator<Item = String> {
    let is_ssh = (
        permission.ip_protocol(),
        permission.from_port(),
        permission.to_port(),
    ) == (Some("tcp"), Some(SSH), Some(SSH));
    let ranges = permission.ip_ranges().iter().filter(move |_| is_ssh);
    ranges.filter_map(|range| range.cidr_ip().map(Into::into))
}

/// Whether a rule allows all traffic among the members of the group.
fn has_members(permission: &IpPermission, group_id: &str) -> bool {
    let mut groups = permission.user_id_group_pairs().iter();
    permission.ip_protocol() == Some(ALL) && groups.any(|g| g.group_id() == Some(group_id))
}

/// Whether a rule is of neither kind that the provider makes.
fn is_foreign(rule: &SecurityGroupRule, group_id: &str) -> bool {
    let is_ssh = (rule.ip_protocol(), rule.from_port(), rule.to_port())
        == (Some("tcp"), Some(SSH), Some(SSH));
    let referenced = rule.referenced_group_info().and_then(|r| r.group_id());
    let is_members = rule.ip_protocol() == Some(ALL) && referenced == Some(group_id);
    let is_own = is_members || (is_ssh && rule.cidr_ipv4().is_some());
    !is_own
}

fn permissions(group_id: &str, rules: &GroupRules) -> Vec<IpPermission> {
    let ssh = rules.ssh_cidrs.iter().map(|cidr| {
        IpPermission::builder()
            .ip_protocol("tcp")
            .from_port(SSH)
            .to_port(SSH)
            .ip_ranges(IpRange::builder().cidr_ip(cidr).build())
            .build()
    });
    let members = rules.members.then(|| {
        IpPermission::builder()
            .ip_protocol(ALL)
            .user_id_group_pairs(UserIdGroupPair::builder().group_id(group_id).build())
            .build()
    });
    ssh.chain(members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::builders::{IpPermissionBuilder, SecurityGroupRuleBuilder};
    use aws_sdk_ec2::types::{Ipv6Range, PrefixListId, ReferencedSecurityGroup, Tag};

    fn rule(id: &str, protocol: &str, port: i32) -> SecurityGroupRuleBuilder {
        SecurityGroupRule::builder()
            .security_group_rule_id(id)
            .group_id("sg-1")
            .ip_protocol(protocol)
            .from_port(port)
            .to_port(port)
    }

    fn permission(protocol: &str, port: i32) -> IpPermissionBuilder {
        IpPermission::builder()
            .ip_protocol(protocol)
            .from_port(port)
            .to_port(port)
    }

    fn cidr(cidr: &str) -> IpRange {
        IpRange::builder().cidr_ip(cidr).build()
    }

    fn pair(id: &str) -> UserIdGroupPair {
        UserIdGroupPair::builder().group_id(id).build()
    }

    fn group(permissions: impl IntoIterator<Item = IpPermissionBuilder>) -> SecurityGroup {
        let permissions = permissions.into_iter().map(IpPermissionBuilder::build);
        SecurityGroup::builder()
            .group_id("sg-1")
            .vpc_id("vpc-1")
            .tags(Tag::builder().key("pool").value("uid").build())
            .set_ip_permissions(Some(permissions.collect()))
            .build()
    }

    #[test]
    fn a_rule_that_somebody_added_is_told_from_the_providers_own() {
        let own = ReferencedSecurityGroup::builder().group_id("sg-1").build();
        let other = ReferencedSecurityGroup::builder().group_id("sg-2").build();
        let rules = [
            rule("sgr-ssh", "tcp", 22).cidr_ipv4("10.0.0.0/8"),
            rule("sgr-members", "-1", -1).referenced_group_info(own),
            rule("sgr-web", "tcp", 80).cidr_ipv4("0.0.0.0/0"),
            rule("sgr-v6", "tcp", 22).cidr_ipv6("::/0"),
            rule("sgr-peer", "-1", -1).referenced_group_info(other),
            rule("sgr-all", "-1", -1).cidr_ipv4("0.0.0.0/0"),
        ];
        let rules = rules.map(SecurityGroupRuleBuilder::build).into();
        let listed = group([
            permission("tcp", 22).ip_ranges(cidr("10.0.0.0/8")),
            permission("-1", -1).user_id_group_pairs(pair("sg-1")),
        ]);
        let found = read(&listed, "pool", &[("sg-1".to_owned(), rules)].into()).unwrap();
        assert_eq!(found.rules.ssh_cidrs, ["10.0.0.0/8".to_owned()].into());
        assert!(found.rules.members);
        let foreign: Vec<&str> = found.foreign_rule_ids.iter().map(String::as_str).collect();
        assert_eq!(foreign, ["sgr-all", "sgr-peer", "sgr-v6", "sgr-web"]);
    }

    #[test]
    fn a_widened_group_is_looked_at_rule_by_rule() {
        let ssh = || permission("tcp", 22).ip_ranges(cidr("10.0.0.0/8"));
        let members = || permission("-1", -1).user_id_group_pairs(pair("sg-1"));
        assert!(is_own(&group([])));
        assert!(is_own(&group([
            ssh().ip_ranges(cidr("192.0.2.0/24")),
            members()
        ])));
        for widened in [
            permission("tcp", 80).ip_ranges(cidr("0.0.0.0/0")),
            ssh().to_port(23),
            ssh().user_id_group_pairs(pair("sg-1")),
            ssh().ipv6_ranges(Ipv6Range::builder().cidr_ipv6("::/0").build()),
            ssh().prefix_list_ids(PrefixListId::builder().prefix_list_id("pl-1").build()),
            members().user_id_group_pairs(pair("sg-2")),
            members().ip_ranges(cidr("0.0.0.0/0")),
            permission("tcp", 22).user_id_group_pairs(pair("sg-1")),
        ] {
            let widened = group([ssh(), members(), widened]);
            assert!(!is_own(&widened), "{widened:?}");
        }
    }
}
