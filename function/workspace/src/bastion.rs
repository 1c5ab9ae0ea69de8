//! The bastion of a policy: a server of the platform that may connect to every workspace.

use std::collections::BTreeMap;

use api::policy::{BastionPolicy, WorkspacePolicy};
use function_runtime::validation::Violation;
use ipnet::Ipv4Net;

use crate::ssh_networks::{self, MAX_PUBLIC_ADDRESSES};

const CIDRS: &str = "input.bastion.cidrs";
const GROUP: &str = "input.bastion.securityGroupId";

/// The pods of a bastion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// Their namespace.
    pub namespace: String,
    /// Their labels.
    pub labels: BTreeMap<String, String>,
}

/// The pods that may connect to workspaces in the cluster; none if the policy names none.
pub fn pods(policy: &WorkspacePolicy) -> Option<Pods> {
    let bastion = policy.bastion.as_ref()?;
    Some(Pods {
        namespace: bastion.namespace.clone()?,
        labels: bastion.pod_labels.clone(),
    })
}

/// The sources from which the bastion connects to machines on EC2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The different networks. Host bits are cleared, as EC2 does.
    pub cidrs: Vec<String>,
    /// The security group; none if the policy names none for the region.
    pub security_group_id: Option<String>,
}

impl Sources {
    /// Whether the bastion connects to no machine.
    pub fn is_empty(&self) -> bool {
        self.cidrs.is_empty() && self.security_group_id.is_none()
    }
}

/// The sources from which the bastion connects to machines in a region.
pub fn sources(policy: &WorkspacePolicy, region: &str) -> Sources {
    Sources {
        cidrs: networks(policy),
        security_group_id: security_group(policy, region).map(str::to_owned),
    }
}

fn networks(policy: &WorkspacePolicy) -> Vec<String> {
    let mut networks = Vec::new();
    for text in policy.bastion.iter().flat_map(|bastion| &bastion.cidrs) {
        let network = text.parse().map(|network: Ipv4Net| network.trunc());
        if let Ok(network) = network.map(|network| network.to_string())
            && !networks.contains(&network)
        {
            networks.push(network);
        }
    }
    networks
}

/// The security group of the bastion, for machines in its region only. EC2 refuses a rule that names
/// a group of another region, and all rules of the same call with it.
fn security_group<'a>(policy: &'a WorkspacePolicy, region: &str) -> Option<&'a str> {
    let id = policy.bastion.as_ref()?.security_group_id.as_deref()?;
    (group_region(policy)? == region).then_some(id)
}

/// The region of the bastion's security group: the only one that the policy allows.
fn group_region(policy: &WorkspacePolicy) -> Option<&str> {
    match policy.allowed_regions.as_deref()? {
        [region] => Some(region),
        _ => None,
    }
}

/// The violations of a policy's bastion.
pub(crate) fn violations(policy: &WorkspacePolicy) -> Vec<Violation> {
    let Some(bastion) = &policy.bastion else {
        return Vec::new();
    };
    let mut violations = outside(policy, None, Some(MAX_PUBLIC_ADDRESSES));
    violations.extend(half(bastion));
    let has_group = bastion.security_group_id.is_some();
    if has_group && group_region(policy).is_none() {
        let problem = "needs exactly one entry in allowedRegions, the region of the group: for \
                       several regions, use cidrs";
        violations.push(Violation::new(GROUP, problem));
    }
    if bastion.only && bastion.namespace.is_none() && bastion.cidrs.is_empty() && !has_group {
        let problem =
            "needs namespace and podLabels, cidrs or securityGroupId: nobody could connect";
        violations.push(Violation::new("input.bastion.only", problem));
    }
    violations
}

/// A namespace without labels, or labels without a namespace.
fn half(bastion: &BastionPolicy) -> Option<Violation> {
    match (&bastion.namespace, bastion.pod_labels.is_empty()) {
        (Some(_), true) => {
            let problem = "is required beside namespace: without labels, every pod of the namespace \
                           could connect";
            Some(Violation::new("input.bastion.podLabels", problem))
        }
        (None, false) => {
            let problem = "is required beside podLabels";
            Some(Violation::new("input.bastion.namespace", problem))
        }
        (Some(_), false) | (None, true) => None,
    }
}

/// The violations of the bastion's networks: unusable, outside the ceiling, or with more public
/// addresses than `most` together.
pub(crate) fn outside(
    policy: &WorkspacePolicy,
    ceiling: Option<&[String]>,
    most: Option<u64>,
) -> Vec<Violation> {
    let texts = policy.bastion.iter().flat_map(|bastion| &bastion.cidrs);
    let mut networks = Vec::new();
    let mut violations = Vec::new();
    for (n, text) in texts.enumerate() {
        match ssh_networks::within(text, &format!("{CIDRS}[{n}]"), ceiling) {
            Ok(network) => networks.push(network),
            Err(violation) => violations.push(violation),
        }
    }
    let open = ssh_networks::public_addresses(&networks);
    let wide = most.filter(|most| open > *most).map(|most| {
        let problem = format!("opens {open} public addresses, and a policy allows {most}");
        Violation::new(CIDRS, problem)
    });
    violations.extend(wide);
    violations
}

/// The violation of the bastion's security group, within the platform's limits: `allowed` are the
/// groups that a bastion may have. A group does not say which addresses its members have, so beside a
/// `ceiling` of networks the group must be one of them.
pub(crate) fn group_outside(
    policy: &WorkspacePolicy,
    ceiling: Option<&[String]>,
    allowed: Option<&[String]>,
) -> Option<Violation> {
    let id = policy.bastion.as_ref()?.security_group_id.as_ref()?;
    let problem = match (allowed, ceiling) {
        (Some(allowed), _) if allowed.contains(id) => return None,
        (None, None) => return None,
        (Some([]) | None, _) => "is not allowed: it must be in bastionSecurityGroupIds".to_owned(),
        (Some(allowed), _) => format!("must be {}", allowed.join(" or ")),
    };
    Some(Violation::new(GROUP, problem))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::limits::tighten;
    use crate::policy;

    fn input(bastion: &Value) -> Value {
        json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v3",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"],
            "sshCidrCeiling": [],
            "bastion": bastion,
        })
    }

    const GROUP: &str = "sg-0123456789abcdef0";

    fn in_one_region(bastion: &Value) -> Value {
        let mut input = input(bastion);
        input["allowedRegions"] = json!(["us-east-1"]);
        input
    }

    fn refused(bastion: &Value) -> String {
        policy::read(Some(&input(bastion))).unwrap_err().to_string()
    }

    #[test]
    fn a_bastion_that_opens_the_internet_is_refused() {
        for (cidrs, said) in [
            (
                json!(["0.0.0.0/0"]),
                "input.bastion.cidrs[0]: must not be the whole internet",
            ),
            (
                json!(["10.0.0.0/8", "0.0.0.0/00"]),
                "input.bastion.cidrs[1]: must",
            ),
            (
                json!(["10.0.0.0/8", "::/0"]),
                "input.bastion.cidrs[1]: write an IPv4 network",
            ),
            (
                json!(["10.0.0.0/33"]),
                "input.bastion.cidrs[0]: must be an IPv4 network",
            ),
            (
                json!(["0.0.0.0/1", "128.0.0.0/1"]),
                "input.bastion.cidrs: opens 4272881664 public addresses, and a policy allows 65536",
            ),
        ] {
            let refused = refused(&json!({"cidrs": cidrs}));
            assert!(refused.starts_with(said), "{refused}");
        }
    }

    #[test]
    fn half_a_bastion_is_refused_with_the_other_half() {
        assert_eq!(
            refused(&json!({"namespace": "gpu-bastion"})),
            "input.bastion.podLabels: is required beside namespace: without labels, every pod of \
             the namespace could connect"
        );
        assert_eq!(
            refused(&json!({"podLabels": {"app": "bastion"}})),
            "input.bastion.namespace: is required beside podLabels"
        );
        assert_eq!(
            refused(&json!({"only": true})),
            "input.bastion.only: needs namespace and podLabels, cidrs or securityGroupId: nobody \
             could connect"
        );
        let group = json!({"securityGroupId": GROUP, "only": true});
        assert!(policy::read(Some(&in_one_region(&group))).is_ok());
        let whole = json!({
            "namespace": "gpu-bastion",
            "podLabels": {"app": "bastion"},
            "cidrs": ["10.0.0.0/8"],
        });
        assert!(policy::read(Some(&input(&whole))).is_ok());
    }

    /// A Composition must not open more to its bastion than the platform allows.
    #[test]
    fn a_bastion_beyond_the_platforms_limits_is_refused() {
        let tightened = |cidrs: Value, limits: &Value| {
            let input = input(&json!({"cidrs": cidrs}));
            let mut policy = policy::read(Some(&input)).unwrap();
            let limits = serde_json::from_value(limits.clone()).unwrap();
            let tightened = tighten::tighten(&mut policy, &limits, "limits");
            tightened.map_err(|refused| refused.to_string())
        };
        let ceiling = json!({"sshCidrCeiling": ["10.0.0.0/8"], "sshMaxAddresses": 16});
        assert_eq!(
            tightened(json!(["10.9.0.0/28", "198.51.100.0/28"]), &ceiling).unwrap_err(),
            "input.bastion.cidrs[1]: must lie within 10.0.0.0/8, with the limits of \
             EnvironmentConfig limits"
        );
        assert!(tightened(json!(["10.9.0.0/28"]), &ceiling).is_ok());
        let number = json!({"sshMaxAddresses": 16});
        assert_eq!(
            tightened(json!(["198.51.100.0/24"]), &number).unwrap_err(),
            "input.bastion.cidrs: opens 256 public addresses, and a policy allows 16, with the \
             limits of EnvironmentConfig limits"
        );
        assert!(tightened(json!(["198.51.100.0/28"]), &number).is_ok());
    }

    #[test]
    fn a_text_that_is_no_security_group_is_refused() {
        for text in [
            "",
            "bastion",
            "sg-",
            "sg-0123",
            "sg-0123456789abcdef01",
            "sg-0123456789ABCDEF0",
            "SG-0123456789abcdef0",
            "sg-0123456789abcdef0\n",
            "123456789012/sg-0123456789abcdef0",
            "pl-0123456789abcdef0",
            "0.0.0.0/0",
        ] {
            let input = in_one_region(&json!({"securityGroupId": text}));
            let refused = policy::read(Some(&input)).unwrap_err().to_string();
            let said = "input.bastion.securityGroupId: ";
            assert!(refused.starts_with(said), "{text:?}: {refused}");
        }
        for text in [GROUP, "sg-01234567"] {
            let input = in_one_region(&json!({"securityGroupId": text}));
            assert!(policy::read(Some(&input)).is_ok(), "{text}");
        }
    }

    /// EC2 would refuse every rule of a machine in another region.
    #[test]
    fn a_security_group_is_for_the_one_region_of_the_policy() {
        let group = json!({"securityGroupId": GROUP});
        for regions in [json!(null), json!([]), json!(["us-east-1", "eu-west-1"])] {
            let mut input = input(&group);
            input["allowedRegions"] = regions;
            assert_eq!(
                policy::read(Some(&input)).unwrap_err().to_string(),
                "input.bastion.securityGroupId: needs exactly one entry in allowedRegions, the \
                 region of the group: for several regions, use cidrs"
            );
        }
        let policy = policy::read(Some(&in_one_region(&group))).unwrap();
        let group_in = |region: &str| super::sources(&policy, region).security_group_id;
        assert_eq!(group_in("us-east-1").as_deref(), Some(GROUP));
        assert_eq!(group_in("eu-west-1"), None);
    }

    /// The addresses of a group's members are not known, so no ceiling bounds them.
    #[test]
    fn a_security_group_beyond_the_platforms_limits_is_refused() {
        let tightened = |limits: Value| {
            let input = in_one_region(&json!({"securityGroupId": GROUP}));
            let mut policy = policy::read(Some(&input)).unwrap();
            let limits = serde_json::from_value(limits).unwrap();
            let tightened = tighten::tighten(&mut policy, &limits, "limits");
            tightened.map_err(|refused| refused.to_string())
        };
        let ceiling = json!({"sshCidrCeiling": ["10.0.0.0/8"]});
        let unlisted = "input.bastion.securityGroupId: is not allowed: it must be in \
                        bastionSecurityGroupIds, with the limits of EnvironmentConfig limits";
        assert_eq!(tightened(ceiling.clone()).unwrap_err(), unlisted);
        let none = json!({"bastionSecurityGroupIds": []});
        assert_eq!(tightened(none).unwrap_err(), unlisted);
        let other = json!({"bastionSecurityGroupIds": ["sg-aaaaaaaa", "sg-bbbbbbbb"]});
        assert_eq!(
            tightened(other).unwrap_err(),
            "input.bastion.securityGroupId: must be sg-aaaaaaaa or sg-bbbbbbbb, with the limits of \
             EnvironmentConfig limits"
        );
        let mut listed = ceiling;
        listed["bastionSecurityGroupIds"] = json!([GROUP]);
        assert_eq!(tightened(listed), Ok(()));
        assert_eq!(tightened(json!({"sshMaxAddresses": 1})), Ok(()));
    }
}
