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

/// Whether nobody but the bastion may connect.
pub fn is_only(policy: &WorkspacePolicy) -> bool {
    policy.bastion.as_ref().is_some_and(|bastion| bastion.only)
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
