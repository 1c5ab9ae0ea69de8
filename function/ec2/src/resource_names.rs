//! Composition resource names of a workspace on EC2.

use function_runtime::resource_names::is_hashed;

/// The first `SpotPool` of a workspace.
pub const POOL: &str = "pool";
/// Prefix of a further `SpotPool` that replaces one that does not fit.
pub const POOL_PREFIX: &str = "pool-";
/// Prefix of an on-demand `Instance`. A hash of the fields that EC2 cannot change follows.
pub const INSTANCE_PREFIX: &str = "instance-";
/// The `SecurityGroup` of on-demand instances.
pub const SECURITY_GROUP: &str = "security-group";
/// The group's rule for outgoing traffic.
pub const EGRESS: &str = "egress";
/// Prefix of the group's rules for SSH. The network follows, or the id of a security group.
pub const SSH_PREFIX: &str = "ssh-";
/// The home volume (`EBSVolume`).
pub const HOME: &str = "home";
/// Prefix of the attachment of the home volume. A hash of the instance id follows.
pub const ATTACHMENT_PREFIX: &str = "home-attachment-";
/// Prefix of the `InstanceState` of an on-demand instance. A hash of the instance id follows.
pub const INSTANCE_STATE_PREFIX: &str = "power-";
/// Prefix of a `Usage`. The names of the used resource and of its user follow.
pub const USAGE_PREFIX: &str = "usage-";

/// Whether a composed resource with this composition resource name belongs to a workspace on EC2.
pub fn owns(name: &str) -> bool {
    let usage = name
        .strip_prefix(USAGE_PREFIX)
        .and_then(|usage| usage.split_once("-by-"));
    match usage {
        Some((of, by)) => is_plain(of) && is_plain(by),
        None => is_plain(name),
    }
}

/// Whether the name belongs to a resource other than a `Usage`.
fn is_plain(name: &str) -> bool {
    matches!(name, POOL | SECURITY_GROUP | EGRESS | HOME)
        || [
            POOL_PREFIX,
            INSTANCE_PREFIX,
            ATTACHMENT_PREFIX,
            INSTANCE_STATE_PREFIX,
        ]
        .into_iter()
        .any(|prefix| is_hashed(prefix, name))
        || is_ssh(name)
}

/// Whether the name belongs to a `SpotPool`.
pub fn is_pool(name: &str) -> bool {
    name == POOL || name.starts_with(POOL_PREFIX)
}

/// The name of the SSH rule for a network, or for a security group.
pub fn ssh(source: &str) -> String {
    format!("{SSH_PREFIX}{}", source.replace(['.', '/'], "-"))
}

/// Whether the name belongs to a rule of the security group.
pub fn is_rule(name: &str) -> bool {
    name == EGRESS || is_ssh(name)
}

/// The name of the `Usage` that protects `of` from deletion until `by` is gone.
pub fn usage(of: &str, by: &str) -> String {
    format!("{USAGE_PREFIX}{of}-by-{by}")
}

/// Whether the name belongs to the SSH rule for a network, or for a security group.
pub fn is_ssh(name: &str) -> bool {
    let source = name.strip_prefix(SSH_PREFIX);
    source.is_some_and(|source| is_network(source) || is_group(source))
}

fn is_network(source: &str) -> bool {
    let numbers: Vec<&str> = source.split('-').collect();
    let as_written = |n: &&str| {
        n.parse::<u8>()
            .is_ok_and(|number| number.to_string() == **n)
    };
    numbers.len() == 5 && numbers.iter().all(as_written)
}

/// Whether a text is the id of a security group, as the policy's pattern has it.
fn is_group(source: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = source.strip_prefix("sg-");
    digits.is_some_and(|digits| (8..=17).contains(&digits.len()) && digits.bytes().all(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use function_runtime::resource_names::hashed;

    #[test]
    fn every_name_that_is_made_here_is_owned() {
        let instance = hashed(INSTANCE_PREFIX, ["g5.xlarge", "ami-1"]);
        let attachment = hashed(ATTACHMENT_PREFIX, ["i-1"]);
        let pool = hashed(POOL_PREFIX, ["g5.xlarge"]);
        let power = hashed(INSTANCE_STATE_PREFIX, ["i-1"]);
        let rule = ssh("203.0.113.0/24");
        assert_eq!(rule, "ssh-203-0-113-0-24");
        let usages = [
            usage(&instance, &attachment),
            usage(SECURITY_GROUP, &instance),
            usage(HOME, &attachment),
        ];
        let plain = [POOL, SECURITY_GROUP, EGRESS, HOME].map(str::to_owned);
        let of_group = ssh("sg-0123456789abcdef0");
        assert_eq!(of_group, "ssh-sg-0123456789abcdef0");
        for name in [instance, attachment, pool, power, rule, of_group]
            .into_iter()
            .chain(usages)
            .chain(plain)
        {
            assert!(owns(&name), "{name}");
            assert!(name.len() <= 63, "{name}");
        }
    }

    /// The function desires all resources that it keeps. If it kept resources of another step,
    /// Crossplane would create them again after that step dropped them.
    #[test]
    fn resources_of_other_steps_are_not_owned() {
        for name in [
            "bucket",
            "instance",
            "instance-bastion",
            "ssh-keys",
            "ssh-1-2-3-4",
            "ssh-+1-2-3-4-5",
            "ssh-001-2-3-4-5",
            "ssh-sg-0123",
            "ssh-sg-0123456789abcdef01",
            "ssh-sg-bastion-host",
            "usage-home-by-usage-home-by-home",
            "home-backup",
            "usage-bucket-by-pool",
            "pool-0123456",
            "pools",
            "",
        ] {
            assert!(!owns(name), "{name}");
        }
    }
}
