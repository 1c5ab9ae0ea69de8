//! The networks that may connect by SSH, within the policy's ceiling and its number of addresses.

use std::net::Ipv4Addr;

use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};
use ipnet::Ipv4Net;

/// The path of the networks for claims that name none.
pub(crate) const DEFAULTS: &str = "input.defaults.sshCidrs";

/// The message for a text that is not a network.
const NO_NETWORK: &str = "must be an IPv4 network, for example 203.0.113.0/24";

/// The largest number of public addresses that a list may open, where neither ceiling nor policy
/// says another number.
pub(crate) const MAX_PUBLIC_ADDRESSES: u64 = 1 << 16;

/// Private networks (RFC 1918) and the shared address space of carriers (RFC 6598). Nobody reaches
/// a machine from these addresses through the internet.
const PRIVATE: [(Ipv4Addr, u8); 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// The path of the networks of a claim.
const CLAIMED: &str = "spec.parameters.ssh.allowedCidrs";

/// The networks of a workspace that may connect by SSH.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// The networks, without those of the bastion.
    pub cidrs: Vec<String>,
    /// The message about networks of the claim that are closed while the workspace runs; none if
    /// all are open.
    pub closed: Option<String>,
}

/// Whether nobody but the bastion may connect.
pub fn is_of_bastion_only(policy: &WorkspacePolicy) -> bool {
    policy.bastion.as_ref().is_some_and(|bastion| bastion.only)
}

/// The networks that may connect by SSH: those of the claim, or else those of the policy. Host bits
/// are cleared, as EC2 does. Where only the bastion may connect, there are none: a claim with
/// networks does not start, and a workspace that is on goes on without them.
///
/// # Errors
///
/// The policy does not allow the networks.
pub fn of(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    is_on: bool,
) -> Result<Networks, Violations> {
    let claimed = parameters
        .ssh
        .as_ref()
        .map_or(&[][..], |ssh| &ssh.allowed_cidrs);
    if is_of_bastion_only(policy) {
        return without_own(claimed, is_on);
    }
    let (texts, field) = if claimed.is_empty() {
        (policy.defaults.ssh_cidrs.as_slice(), DEFAULTS)
    } else {
        (claimed, CLAIMED)
    };
    let (networks, violations) = read(texts, field, policy);
    Violations::into_result(violations)?;
    Ok(Networks {
        cidrs: networks.iter().map(ToString::to_string).collect(),
        closed: None,
    })
}

/// The networks where only the bastion may connect.
fn without_own(claimed: &[String], is_on: bool) -> Result<Networks, Violations> {
    if claimed.is_empty() {
        return Ok(Networks::default());
    }
    let problem = "must be empty, because the policy's bastion.only lets the bastion connect and \
                   nobody else: remove the networks, and connect through the bastion";
    if !is_on {
        return Err(Violation::new(CLAIMED, problem).into());
    }
    Ok(Networks {
        cidrs: Vec::new(),
        closed: Some(format!(
            "its own networks are closed, and if it stops, it cannot start again: {CLAIMED}: \
             {problem}"
        )),
    })
}

/// The different networks of a list within the policy's bounds, and the violations of the others.
/// `field` is the path of the list.
pub(crate) fn read(
    texts: &[String],
    field: &str,
    policy: &WorkspacePolicy,
) -> (Vec<Ipv4Net>, Vec<Violation>) {
    let ceiling = policy.ssh_cidr_ceiling.as_deref();
    let mut networks: Vec<Ipv4Net> = Vec::new();
    let mut violations = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        match within(text, &format!("{field}[{n}]"), ceiling) {
            Ok(network) if networks.contains(&network) => {}
            Ok(network) => networks.push(network),
            Err(violation) => violations.push(violation),
        }
    }
    violations.extend(too_wide(&networks, field, policy));
    (networks, violations)
}

/// The violation of a list that opens too many addresses. Networks that are harmless one by one can
/// be the whole internet together.
fn too_wide(networks: &[Ipv4Net], path: &str, policy: &WorkspacePolicy) -> Option<Violation> {
    let most = most_addresses(policy)?;
    let open = public_addresses(networks);
    (open > most).then(|| {
        let problem = format!(
            "opens {open} public addresses, and the policy allows {most}: name only the networks \
             you connect from"
        );
        Violation::new(path, problem)
    })
}

/// The largest number of public addresses that a list may open. A ceiling allows all that it names,
/// unless the policy has a number, too.
fn most_addresses(policy: &WorkspacePolicy) -> Option<u64> {
    let default = policy.ssh_cidr_ceiling.is_none();
    policy
        .ssh_max_addresses
        .or(default.then_some(MAX_PUBLIC_ADDRESSES))
}

/// The number of different addresses in the networks, without those of private networks.
pub(crate) fn public_addresses(networks: &[Ipv4Net]) -> u64 {
    let size = |network: &Ipv4Net| 1_u64 << (32 - network.prefix_len());
    let public = |network: &Ipv4Net| {
        let private = PRIVATE.map(|(address, length)| Ipv4Net::new_assert(address, length));
        if private.iter().any(|private| private.contains(network)) {
            return 0;
        }
        let within = private.iter().filter(|private| network.contains(*private));
        size(network) - within.map(size).sum::<u64>()
    };
    // The aggregate's networks have no address in common.
    let networks = networks.to_vec();
    Ipv4Net::aggregate(&networks).iter().map(public).sum()
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
///
/// # Errors
///
/// The text is no network, or the network is too wide.
pub(crate) fn within(
    text: &str,
    path: &str,
    ceiling: Option<&[String]>,
) -> Result<Ipv4Net, Violation> {
    let network: Ipv4Net = text.parse().map_err(|_| Violation::new(path, NO_NETWORK))?;
    if network.prefix_len() == 0 && ceiling.is_none() {
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
    use serde_json::{Value, json};

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

    /// What a claim with these networks gets under a policy with these fields.
    fn answer(networks: &[String], policy: Value) -> Result<Vec<String>, String> {
        let mut input = json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v3",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"]
        });
        let Value::Object(policy) = policy else {
            panic!("no object: {policy}")
        };
        input.as_object_mut().unwrap().extend(policy);
        let claim = json!({"owner": "alice", "ssh": {"allowedCidrs": networks}});
        let policy = serde_json::from_value(input).unwrap();
        of(&serde_json::from_value(claim).unwrap(), &policy, false)
            .map(|networks| networks.cidrs)
            .map_err(|refused| refused.to_string())
    }

    fn texts<const N: usize>(networks: [&str; N]) -> Vec<String> {
        networks.map(str::to_owned).into()
    }

    #[test]
    fn the_internet_in_parts_is_refused_with_the_number_of_addresses() {
        let halves = texts(["0.0.0.0/1", "128.0.0.0/1"]);
        assert_eq!(
            answer(&halves, json!({})).unwrap_err(),
            "spec.parameters.ssh.allowedCidrs: opens 4272881664 public addresses, and the policy \
             allows 65536: name only the networks you connect from"
        );
        let quarters = texts(["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/2"]);
        assert!(answer(&quarters, json!({})).is_err());
        let sixteen = texts(["203.0.0.0/16"]);
        assert_eq!(answer(&sixteen, json!({})), Ok(sixteen.clone()));
        let and_one = texts(["203.0.0.0/16", "198.51.100.7/32"]);
        assert!(answer(&and_one, json!({})).is_err());
        assert!(answer(&and_one, json!({"sshMaxAddresses": 65537})).is_ok());
        assert!(answer(&sixteen, json!({"sshMaxAddresses": 256})).is_err());
        let private = texts([
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "100.64.0.0/10",
        ]);
        assert_eq!(answer(&private, json!({})), Ok(private.clone()));
    }

    #[test]
    fn a_ceiling_allows_what_it_names_and_a_number_beside_it_still_holds() {
        let wide = texts(["203.0.0.0/12"]);
        let ceiling = json!(["203.0.0.0/8"]);
        assert!(answer(&wide, json!({"sshCidrCeiling": ceiling})).is_ok());
        let both = json!({"sshCidrCeiling": ceiling, "sshMaxAddresses": 256});
        assert!(answer(&wide, both).is_err());
        let internet = texts(["0.0.0.0/0"]);
        assert!(answer(&internet, json!({})).is_err());
        assert!(answer(&internet, json!({"sshCidrCeiling": ["0.0.0.0/1"]})).is_err());
        assert!(answer(&internet, json!({"sshCidrCeiling": ["0.0.0.0/0"]})).is_ok());
    }

    /// The number of public addresses, counted between the ends of sorted ranges. It uses none of
    /// the code above.
    fn counted(networks: &[String]) -> u64 {
        let range = |text: &str| {
            let (address, length) = text.split_once('/').unwrap();
            let address = u64::from(u32::from(address.parse::<Ipv4Addr>().unwrap()));
            let size = 1_u64 << (32 - length.parse::<u32>().unwrap());
            let start = address / size * size;
            (start, start + size)
        };
        let open: Vec<_> = networks.iter().map(|text| range(text)).collect();
        let private = [
            "10.0.0.0/8",
            "100.64.0.0/10",
            "172.16.0.0/12",
            "192.168.0.0/16",
        ]
        .map(range);
        let mut ends: Vec<u64> = open
            .iter()
            .chain(&private)
            .flat_map(|(start, end)| [*start, *end])
            .collect();
        ends.sort_unstable();
        let inside = |ranges: &[(u64, u64)], at| ranges.iter().any(|(a, b)| (*a..*b).contains(&at));
        let pieces = ends.windows(2);
        let public = pieces.filter(|ends| inside(&open, ends[0]) && !inside(&private, ends[0]));
        public.map(|ends| ends[1] - ends[0]).sum()
    }

    #[test]
    fn no_list_of_networks_opens_more_than_the_policy_allows() {
        let seed = 20_261_124;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut refused = 0;
        for round in 0..3_000 {
            let most = 1_u64 << random.u32(0..33);
            let network = |random: &mut fastrand::Rng| {
                // Neighbours make lists whose parts are small and whose union is not.
                let start = *random
                    .choice(&[0, 0x0A00_0000, 0xAC10_0000, 0xCB00_0000])
                    .unwrap();
                let address = Ipv4Addr::from(start ^ (random.u32(..) & random.u32(..)));
                format!("{address}/{}", random.u32(1..33))
            };
            let networks: Vec<_> = (0..random.usize(1..9))
                .map(|_| network(&mut random))
                .collect();
            let answer = answer(&networks, json!({"sshMaxAddresses": most}));
            let wide = counted(&networks) > most;
            refused += u32::from(wide);
            assert_eq!(
                answer.is_err(),
                wide,
                "seed {seed}, round {round}: {networks:?}, {most}"
            );
        }
        assert!(
            (500..2_500).contains(&refused),
            "{refused} of 3000 were too wide"
        );
    }
}
