//! Security groups and their rules.

use std::collections::BTreeSet;

use jiff::Timestamp;
use memory_ec2::{Cloud, Rule, SecurityGroup};
use provider_aws::GroupRequest;
use provider_core::{GroupRules, InstanceState};

use super::query::Query;
use super::xml::Xml;
use super::{Answer, refused};

pub(crate) fn describe(query: &Query, cloud: &Cloud, now: Timestamp) -> String {
    let filters = query.filters();
    let passes = |group: &&SecurityGroup| {
        let mut filters = filters.iter();
        group.listed_from <= now && filters.all(|f| f.passes_tags(&group.tags).unwrap_or(true))
    };
    let groups = cloud.firewall.groups.iter().filter(passes);
    Xml::answer("DescribeSecurityGroups", |xml| {
        xml.set("securityGroupInfo", groups, |xml, group| {
            xml.values(&[
                ("ownerId", "123456789012"),
                ("groupId", &group.id),
                ("groupName", &group.name),
                ("groupDescription", "SpotPool of provider-gpu-spot"),
                ("vpcId", &group.vpc_id),
            ]);
            xml.set("ipPermissions", group.rules.values(), |xml, rule| {
                permission(xml, group, rule);
            });
            xml.tags(&group.tags);
        });
    })
}

pub(crate) fn describe_rules(query: &Query, cloud: &Cloud) -> String {
    let filters = query.filters();
    let ids: BTreeSet<&String> = filters.iter().flat_map(|f| &f.values).collect();
    let groups = cloud.firewall.groups.iter();
    let named = groups.filter(|group| ids.contains(&group.id));
    let rules = named.flat_map(|group| group.rules.iter().map(move |rule| (group, rule)));
    Xml::answer("DescribeSecurityGroupRules", |xml| {
        xml.set("securityGroupRuleSet", rules, |xml, (group, (id, rule))| {
            xml.values(&[
                ("securityGroupRuleId", id),
                ("groupId", &group.id),
                ("groupOwnerId", "123456789012"),
                ("isEgress", "false"),
            ]);
            let (protocol, port) = protocol(rule);
            xml.values(&[
                ("ipProtocol", protocol),
                ("fromPort", port),
                ("toPort", port),
            ]);
            match rule {
                Rule::Ssh(cidr) => xml.value("cidrIpv4", cidr),
                Rule::Web => xml.value("cidrIpv4", "0.0.0.0/0"),
                Rule::SshFrom(id) => xml.element("referencedGroupInfo", |xml| {
                    xml.value("groupId", id);
                }),
                Rule::Members => xml.element("referencedGroupInfo", |xml| {
                    xml.value("groupId", &group.id);
                }),
            }
        });
    })
}

pub(crate) fn create(query: &Query, cloud: &mut Cloud, now: Timestamp) -> Answer {
    let text = |key| query.text(key).unwrap_or_default().to_owned();
    let request = GroupRequest {
        name: text("GroupName"),
        description: text("GroupDescription"),
        vpc_id: text("VpcId"),
        tags: query.tags_of("security-group"),
    };
    let lag = cloud.pace.lists_group;
    let id = cloud.firewall.create(&request, now, lag).map_err(refused)?;
    Ok(Xml::answer("CreateSecurityGroup", |xml| {
        xml.values(&[("return", "true"), ("groupId", &id)]);
    }))
}

/// EC2 refuses the whole call when one of its rules exists already.
pub(crate) fn authorize(query: &Query, cloud: &mut Cloud) -> Answer {
    let (id, rules) = rules(query)?;
    let group = cloud.firewall.groups.iter().find(|group| group.id == id);
    let has = |rule: &Rule| group.is_some_and(|g| g.rules.values().any(|r| r == rule));
    let ssh = rules.ssh_cidrs.iter().cloned().map(Rule::Ssh);
    let groups = rules.ssh_groups.iter().cloned().map(Rule::SshFrom);
    if ssh
        .chain(groups)
        .chain(rules.members.then_some(Rule::Members))
        .any(|rule| has(&rule))
    {
        return Err("InvalidPermission.Duplicate".to_owned());
    }
    cloud.firewall.authorize(&id, &rules).map_err(refused)?;
    Ok(Xml::done("AuthorizeSecurityGroupIngress"))
}

pub(crate) fn revoke(query: &Query, cloud: &mut Cloud) -> Answer {
    let (id, rules) = rules(query)?;
    let ids = query.list("SecurityGroupRuleId").into_iter().collect();
    cloud.firewall.revoke(&id, &rules, &ids).map_err(refused)?;
    Ok(Xml::done("RevokeSecurityGroupIngress"))
}

pub(crate) fn delete(query: &Query, cloud: &mut Cloud, now: Timestamp) -> Answer {
    let id = query.text("GroupId").unwrap_or_default();
    let is_used = cloud.machines.iter().any(|machine| {
        machine.state(now) != InstanceState::Terminated
            && machine.group_ids.iter().any(|of| of == id)
    });
    cloud.firewall.delete(id, is_used).map_err(refused)?;
    Ok(Xml::done("DeleteSecurityGroup"))
}

/// The group and the rules of a call.
fn rules(query: &Query) -> Result<(String, GroupRules), String> {
    let id = query.text("GroupId").ok_or("MissingParameter")?.to_owned();
    let mut rules = GroupRules::default();
    for item in query.items("IpPermissions") {
        let ranges = query.items(&format!("{item}.IpRanges"));
        let cidrs = ranges.filter_map(|range| query.text(&format!("{range}.CidrIp")));
        rules.ssh_cidrs.extend(cidrs.map(str::to_owned));
        let groups = query.items(&format!("{item}.Groups"));
        let named = groups.filter_map(|group| query.text(&format!("{group}.GroupId")));
        if query.text(&format!("{item}.IpProtocol")) == Some("tcp") {
            rules.ssh_groups.extend(named.map(str::to_owned));
        } else {
            rules.members |= named.into_iter().any(|group| group == id);
        }
    }
    Ok((id, rules))
}

fn permission(xml: &mut Xml, group: &SecurityGroup, rule: &Rule) {
    let (protocol, port) = protocol(rule);
    xml.value("ipProtocol", protocol);
    if port != "-1" {
        xml.values(&[("fromPort", port), ("toPort", port)]);
    }
    let cidr = match rule {
        Rule::Ssh(cidr) => Some(cidr.as_str()),
        Rule::Web => Some("0.0.0.0/0"),
        Rule::SshFrom(_) | Rule::Members => None,
    };
    let source = match rule {
        Rule::SshFrom(id) => Some(id),
        Rule::Members => Some(&group.id),
        Rule::Ssh(_) | Rule::Web => None,
    };
    xml.set("groups", source, |xml, id| {
        xml.values(&[("userId", "123456789012"), ("groupId", id)]);
    });
    xml.set("ipRanges", cidr, |xml, cidr| xml.value("cidrIp", cidr));
    xml.values(&[("ipv6Ranges", ""), ("prefixListIds", "")]);
}

/// The protocol, and the port that is both ends of the rule's port range.
fn protocol(rule: &Rule) -> (&'static str, &'static str) {
    match rule {
        Rule::Ssh(_) | Rule::SshFrom(_) => ("tcp", "22"),
        Rule::Web => ("tcp", "80"),
        Rule::Members => ("-1", "-1"),
    }
}
