//! The bastion of a policy: a server of the platform that may connect to every workspace.

use std::collections::BTreeMap;

use api::policy::{BastionPolicy, WorkspacePolicy};
use function_runtime::validation::Violation;
use ipnet::Ipv4Net;

use crate::ssh_networks::{self, MAX_PUBLIC_ADDRESSES};

const CIDRS: &str = "input.bastion.cidrs";

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

/// The different networks from which the bastion connects to machines. Host bits are cleared, as
/// EC2 does.
pub fn networks(policy: &WorkspacePolicy) -> Vec<String> {
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

/// The violations of a policy's bastion.
pub(crate) fn violations(policy: &WorkspacePolicy) -> Vec<Violation> {
    let Some(bastion) = &policy.bastion else {
        return Vec::new();
    };
    let mut violations = outside(policy, None, Some(MAX_PUBLIC_ADDRESSES));
    violations.extend(half(bastion));
    if bastion.only && bastion.namespace.is_none() && bastion.cidrs.is_empty() {
        let problem = "needs namespace and podLabels, or cidrs: nobody could connect";
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
            "input.bastion.only: needs namespace and podLabels, or cidrs: nobody could connect"
        );
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
}
