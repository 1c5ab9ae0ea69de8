//! The security groups of a spec.

use api::pool::SpotPoolParameters;
use ipnet::Ipv4Net;
use provider_aws::Subnet;
use provider_core::{GroupRules, SecurityGroups};

use super::invalid::{Invalid, invalid};

/// The groups of new instances: the spec's own, or one that the provider makes.
pub(super) fn security_groups(
    spec: &SpotPoolParameters,
    subnets: &[Subnet],
) -> Result<SecurityGroups, Invalid> {
    if let Some(ids) = &spec.security_group_ids {
        return Ok(SecurityGroups::Given(ids.clone()));
    }
    let groups = spec.ssh.iter();
    let groups = groups.flat_map(|ssh| &ssh.allowed_security_group_ids);
    let cidrs = spec.ssh.iter().flat_map(|ssh| &ssh.allowed_cidrs);
    let cidrs = cidrs.enumerate().map(|(index, cidr)| network(index, cidr));
    Ok(SecurityGroups::Owned {
        vpc_id: subnets
            .first()
            .map(|s| s.vpc_id.clone())
            .unwrap_or_default(),
        rules: GroupRules {
            ssh_cidrs: cidrs.collect::<Result<_, _>>()?,
            ssh_groups: groups.cloned().collect(),
            // A leased instance must not reach the instances of other leases.
            members: spec.leases.is_none(),
        },
    })
}

/// A network as EC2 lists it, with the bits of the host cleared: "If you specify 100.68.0.18/18, we
/// modify it to 100.68.0.0/18" (`AuthorizeSecurityGroupIngress` in the Amazon EC2 API Reference). A
/// rule in another form would be missing in every list, and be made again at each look.
fn network(index: usize, cidr: &str) -> Result<String, Invalid> {
    let network: Ipv4Net = cidr.parse().map_err(|_| {
        let problem = format!("{cidr} is no IPv4 network; write one such as 203.0.113.0/24");
        invalid(&format!("ssh.allowedCidrs[{index}]"), problem)
    })?;
    Ok(network.trunc().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_written_as_ec2_lists_it() {
        for (written, listed) in [
            ("100.68.0.18/18", "100.68.0.0/18"),
            ("203.0.113.0/24", "203.0.113.0/24"),
            ("203.0.113.7/32", "203.0.113.7/32"),
        ] {
            assert_eq!(network(0, written).unwrap(), listed);
        }
    }

    #[test]
    fn a_text_that_is_no_network_is_named_with_its_place() {
        for text in ["10.0.0.999/8", "10.0.0.0/33", "10.0.0.0"] {
            let error = network(1, text).unwrap_err();
            assert_eq!(error.field, "ssh.allowedCidrs[1]");
            assert!(error.problem.contains(text), "{}", error.problem);
        }
    }
}
