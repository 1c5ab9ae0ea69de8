//! The rules of pools' security groups, as EC2 writes them.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{
    IpPermission, IpRange, SecurityGroup, SecurityGroupRule, UserIdGroupPair,
};
use provider_core::{Group, GroupRules};

use crate::tagging::tag_value;

const SSH: i32 = 22;
/// EC2's name for all protocols.
const ALL: &str = "-1";

/// A group of a pool as EC2 lists it; none without the tag of a pool. `rules` are the rules of the groups
/// that have others than the provider's own, by group.
pub(crate) fn read(
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
        let groups = ssh_groups(permission, group.owner_id());
        found.rules.ssh_groups.extend(groups);
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

/// Whether a group has only rules of the kinds that the provider makes.
pub(crate) fn is_own(group: &SecurityGroup) -> bool {
    let id = group.group_id().unwrap_or_default();
    group.ip_permissions().iter().all(|permission| {
        let cidrs = permission.ip_ranges().len();
        let groups = permission.user_id_group_pairs();
        let own_cidrs = ssh_cidrs(permission).count();
        let own_groups = usize::from(has_members(permission, id))
            + ssh_groups(permission, group.owner_id()).count();
        permission.ipv6_ranges().is_empty()
            && permission.prefix_list_ids().is_empty()
            && (cidrs, groups.len()) == (own_cidrs, own_groups)
    })
}

/// The networks of an SSH rule. Empty for any other rule.
fn ssh_cidrs(permission: &IpPermission) -> impl Iterator<Item = String> {
    let is_ssh = is_ssh(permission);
    let ranges = permission.ip_ranges().iter().filter(move |_| is_ssh);
    ranges.filter_map(|range| range.cidr_ip().map(Into::into))
}

/// The security groups of an SSH rule. Empty for any other rule. A group of another account is no
/// group that the provider named: a rule about it is revoked by the rule's id.
fn ssh_groups(permission: &IpPermission, account: Option<&str>) -> impl Iterator<Item = String> {
    let is_ssh = is_ssh(permission);
    let pairs = permission.user_id_group_pairs().iter();
    let own = pairs.filter(move |pair| is_ssh && is_of_account(pair.user_id(), account));
    own.filter_map(|pair| pair.group_id().map(Into::into))
}

fn is_ssh(permission: &IpPermission) -> bool {
    let ports = (permission.from_port(), permission.to_port());
    permission.ip_protocol() == Some("tcp") && ports == (Some(SSH), Some(SSH))
}

/// Whether a rule names a security group of the account whose group has the rule. EC2 names no
/// account in some answers about groups of the caller's own.
fn is_of_account(user_id: Option<&str>, account: Option<&str>) -> bool {
    user_id.is_none() || account.is_none() || user_id == account
}

/// Whether a rule allows all traffic among the members of the group.
fn has_members(permission: &IpPermission, group_id: &str) -> bool {
    let mut groups = permission.user_id_group_pairs().iter();
    permission.ip_protocol() == Some(ALL) && groups.any(|g| g.group_id() == Some(group_id))
}

/// Whether a rule is of no kind that the provider makes.
fn is_foreign(rule: &SecurityGroupRule, group_id: &str) -> bool {
    let is_ssh = (rule.ip_protocol(), rule.from_port(), rule.to_port())
        == (Some("tcp"), Some(SSH), Some(SSH));
    let referenced = rule.referenced_group_info();
    let is_members =
        rule.ip_protocol() == Some(ALL) && referenced.and_then(|r| r.group_id()) == Some(group_id);
    let is_of_own_account =
        referenced.is_some_and(|r| is_of_account(r.user_id(), rule.group_owner_id()));
    let is_own = is_members || (is_ssh && (rule.cidr_ipv4().is_some() || is_of_own_account));
    !is_own
}

/// The rules as EC2 takes them, one for each source.
pub(crate) fn permissions(group_id: &str, rules: &GroupRules) -> Vec<IpPermission> {
    let ssh = IpPermission::builder()
        .ip_protocol("tcp")
        .from_port(SSH)
        .to_port(SSH);
    let cidrs = rules.ssh_cidrs.iter().map(|cidr| {
        let range = IpRange::builder().cidr_ip(cidr).build();
        ssh.clone().ip_ranges(range).build()
    });
    let pair = |id: &str| UserIdGroupPair::builder().group_id(id).build();
    let groups = rules.ssh_groups.iter();
    let groups = groups.map(|id| ssh.clone().user_id_group_pairs(pair(id)).build());
    let members = IpPermission::builder().ip_protocol(ALL);
    let members = members.user_id_group_pairs(pair(group_id)).build();
    let members = rules.members.then_some(members);
    cidrs.chain(groups).chain(members).collect()
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
            .group_owner_id("123456789012")
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

    fn pair_of(id: &str, account: &str) -> UserIdGroupPair {
        let pair = UserIdGroupPair::builder().group_id(id);
        pair.user_id(account).build()
    }

    fn group(permissions: impl IntoIterator<Item = IpPermissionBuilder>) -> SecurityGroup {
        let permissions = permissions.into_iter().map(IpPermissionBuilder::build);
        SecurityGroup::builder()
            .group_id("sg-1")
            .owner_id("123456789012")
            .vpc_id("vpc-1")
            .tags(Tag::builder().key("pool").value("uid").build())
            .set_ip_permissions(Some(permissions.collect()))
            .build()
    }

    #[test]
    fn a_rule_that_somebody_added_is_told_from_the_providers_own() {
        let referenced = |id: &str| ReferencedSecurityGroup::builder().group_id(id);
        let own = referenced("sg-1").build();
        let other = referenced("sg-2").build();
        let of_account = |account: &str| referenced("sg-bastion").user_id(account).build();
        let rules = [
            rule("sgr-ssh", "tcp", 22).cidr_ipv4("10.0.0.0/8"),
            rule("sgr-bastion", "tcp", 22).referenced_group_info(of_account("123456789012")),
            rule("sgr-account", "tcp", 22).referenced_group_info(of_account("210987654321")),
            rule("sgr-peer-web", "tcp", 80).referenced_group_info(other.clone()),
            rule("sgr-members", "-1", -1).referenced_group_info(own),
            rule("sgr-web", "tcp", 80).cidr_ipv4("0.0.0.0/0"),
            rule("sgr-v6", "tcp", 22).cidr_ipv6("::/0"),
            rule("sgr-peer", "-1", -1).referenced_group_info(other),
            rule("sgr-all", "-1", -1).cidr_ipv4("0.0.0.0/0"),
        ];
        let rules = rules.map(SecurityGroupRuleBuilder::build).into();
        let listed = group([
            permission("tcp", 22)
                .ip_ranges(cidr("10.0.0.0/8"))
                .user_id_group_pairs(pair_of("sg-bastion", "123456789012"))
                .user_id_group_pairs(pair_of("sg-bastion", "210987654321")),
            permission("tcp", 80).user_id_group_pairs(pair("sg-2")),
            permission("-1", -1).user_id_group_pairs(pair("sg-1")),
        ]);
        let found = read(&listed, "pool", &[("sg-1".to_owned(), rules)].into()).unwrap();
        assert_eq!(found.rules.ssh_cidrs, ["10.0.0.0/8".to_owned()].into());
        assert_eq!(found.rules.ssh_groups, ["sg-bastion".to_owned()].into());
        assert!(found.rules.members);
        let foreign: Vec<&str> = found.foreign_rule_ids.iter().map(String::as_str).collect();
        let expected = ["account", "all", "peer", "peer-web", "v6", "web"];
        assert_eq!(foreign, expected.map(|rule| format!("sgr-{rule}")));
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
        assert!(is_own(&group([
            ssh().user_id_group_pairs(pair_of("sg-bastion", "123456789012"))
        ])));
        assert!(is_own(&group([ssh().user_id_group_pairs(pair("sg-1"))])));
        for widened in [
            permission("tcp", 80).ip_ranges(cidr("0.0.0.0/0")),
            ssh().to_port(23),
            ssh().user_id_group_pairs(pair_of("sg-bastion", "210987654321")),
            permission("tcp", 80).user_id_group_pairs(pair("sg-1")),
            ssh().ipv6_ranges(Ipv6Range::builder().cidr_ipv6("::/0").build()),
            ssh().prefix_list_ids(PrefixListId::builder().prefix_list_id("pl-1").build()),
            members().user_id_group_pairs(pair("sg-2")),
            members().ip_ranges(cidr("0.0.0.0/0")),
        ] {
            let widened = group([ssh(), members(), widened]);
            assert!(!is_own(&widened), "{widened:?}");
        }
    }

    #[test]
    fn each_source_of_ssh_is_a_rule_of_its_own() {
        let rules = GroupRules {
            ssh_cidrs: ["10.0.0.0/8".to_owned()].into(),
            ssh_groups: ["sg-bastion".to_owned()].into(),
            members: true,
        };
        let asked = permissions("sg-1", &rules);
        let expected = [
            permission("tcp", 22).ip_ranges(cidr("10.0.0.0/8")).build(),
            permission("tcp", 22)
                .user_id_group_pairs(pair("sg-bastion"))
                .build(),
            IpPermission::builder()
                .ip_protocol(ALL)
                .user_id_group_pairs(pair("sg-1"))
                .build(),
        ];
        assert_eq!(asked, expected);
        let listed = group([
            permission("tcp", 22)
                .ip_ranges(cidr("10.0.0.0/8"))
                .user_id_group_pairs(pair_of("sg-bastion", "123456789012")),
            permission("-1", -1).user_id_group_pairs(pair("sg-1")),
        ]);
        let found = read(&listed, "pool", &BTreeMap::new()).unwrap();
        assert_eq!(found.rules, rules);
    }
}
