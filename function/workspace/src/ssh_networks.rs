//! The networks that may connect by SSH, within the policy's ceiling.

use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};
use ipnet::Ipv4Net;

/// The message for a text that is not a network.
const NO_NETWORK: &str = "must be an IPv4 network, for example 203.0.113.0/24";

/// The message for a workspace without a network.
pub const NONE: &str = "nobody can connect: add the networks you connect from to \
                                  spec.parameters.ssh.allowedCidrs";

/// The networks that may connect by SSH: those of the claim, or else those of the policy. Host bits
/// are cleared, as EC2 does.
pub fn of(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
) -> Result<Vec<String>, Violations> {
    let claimed = parameters
        .ssh
        .as_ref()
        .map_or(&[][..], |ssh| &ssh.allowed_cidrs);
    let (texts, field) = if claimed.is_empty() {
        (
            policy.defaults.ssh_cidrs.as_slice(),
            "input.defaults.sshCidrs",
        )
    } else {
        (claimed, "spec.parameters.ssh.allowedCidrs")
    };
    let mut networks: Vec<String> = Vec::new();
    let mut violations = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        match within(
            text,
            &format!("{field}[{n}]"),
            policy.ssh_cidr_ceiling.as_deref(),
        ) {
            Ok(network) => {
                let network = network.to_string();
                if !networks.contains(&network) {
                    networks.push(network);
                }
            }
            Err(violation) => violations.push(violation),
        }
    }
    Violations::into_result(violations)?;
    Ok(networks)
}

/// The texts of a ceiling that are no networks.
pub(crate) fn malformed(ceiling: &[String], field: &str) -> Vec<Violation> {
    let texts = ceiling.iter().enumerate();
    let malformed = texts.filter(|(_, text)| text.parse::<Ipv4Net>().is_err());
    malformed
        .map(|(n, _)| Violation::new(format!("{field}[{n}]"), NO_NETWORK))
        .collect()
}

/// Parses one network and checks that it lies within the ceiling.
pub fn within(text: &str, path: &str, ceiling: Option<&[String]>) -> Result<Ipv4Net, Violation> {
    let network: Ipv4Net = text.parse().map_err(|_| Violation::new(path, NO_NETWORK))?;
    if network.prefix_len() == 0 {
        let problem = "must not be the whole internet; name the networks you connect from";
        return Err(Violation::new(path, problem));
    }
    if let Some(ceiling) = ceiling {
        let within = ceiling
            .iter()
            .filter_map(|text| text.parse::<Ipv4Net>().ok())
            .any(|outer| outer.contains(&network));
        if !within {
            let problem = match ceiling {
                [] => "must be empty: the policy allows no network".to_owned(),
                _ => format!("must lie within {}", ceiling.join(" or ")),
            };
            return Err(Violation::new(path, problem));
        }
    }
    Ok(network.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_outside_the_ceiling_is_refused() {
        let ceiling = ["10.0.0.0/8".to_owned()];
        let check = |text: &str| within(text, "p", Some(&ceiling)).map(|n| n.to_string());
        assert_eq!(check("10.1.2.3/16").unwrap(), "10.1.0.0/16");
        assert!(check("11.0.0.0/16").is_err());
        assert!(check("8.0.0.0/6").is_err(), "it contains the ceiling");
        assert!(within("10.0.0.0/8", "p", Some(&[])).is_err());
    }

    #[test]
    fn the_whole_internet_and_nonsense_are_refused_without_a_ceiling() {
        for text in [
            "0.0.0.0/0",
            "10.0.0.0/0",
            "300.0.0.1/24",
            "10.0.0.0/33",
            "10.0.0.0",
            "::/64",
        ] {
            assert!(within(text, "p", None).is_err(), "{text}");
        }
        assert!(within("192.0.2.7/32", "p", None).is_ok());
    }
}
