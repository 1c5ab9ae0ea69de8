//! Composition resource names of a workspace on EC2.

use function_runtime::resource_names::is_hashed;

/// A workspace's `SpotPool`.
pub const POOL: &str = "pool";
/// A further `SpotPool`, while one that does not fit any more is replaced.
pub const POOL_PREFIX: &str = "pool-";
/// The prefix of an on-demand `Instance`; a hash of the fields that EC2 cannot change follows.
pub const INSTANCE_PREFIX: &str = "instance-";
/// The on-demand instances' `SecurityGroup`.
pub const SECURITY_GROUP: &str = "security-group";
/// Its rule for everything that goes out.
pub const EGRESS: &str = "egress";
/// Its rule for one network that may connect, by that network.
pub const SSH_PREFIX: &str = "ssh-";
/// The home volume.
pub const HOME: &str = "home";
/// Its attachment to an instance, by the instance's id.
pub const ATTACHMENT_PREFIX: &str = "home-attachment-";
/// Whether an on-demand instance is on or off, by the instance's id.
pub const INSTANCE_STATE_PREFIX: &str = "power-";
/// A deletion order, by what is used and by whom.
pub const USAGE_PREFIX: &str = "usage-";

/// Whether a resource of this name is a part of a workspace on EC2.
pub fn owns(name: &str) -> bool {
    let usage = name
        .strip_prefix(USAGE_PREFIX)
        .and_then(|usage| usage.split_once("-by-"));
    match usage {
        Some((of, by)) => is_plain(of) && is_plain(by),
        None => is_plain(name),
    }
}

/// Whether it is the name of anything but a `Usage`.
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

/// Whether the name is that of a `SpotPool`.
pub fn is_pool(name: &str) -> bool {
    name == POOL || name.starts_with(POOL_PREFIX)
}

/// The name of the rule that lets a network in.
pub fn ssh(cidr: &str) -> String {
    format!("{SSH_PREFIX}{}", cidr.replace(['.', '/'], "-"))
}

/// The name of the `Usage` that keeps `of` until `by` is gone.
pub fn usage(of: &str, by: &str) -> String {
    format!("{USAGE_PREFIX}{of}-by-{by}")
}

/// Whether the name is that of a rule for one network.
pub fn is_ssh(name: &str) -> bool {
    name.strip_prefix(SSH_PREFIX).is_some_and(|network| {
        let numbers: Vec<&str> = network.split('-').collect();
        let as_written = |n: &&str| {
            n.parse::<u8>()
                .is_ok_and(|number| number.to_string() == **n)
        };
        numbers.len() == 5 && numbers.iter().all(as_written)
    })
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
        for name in [instance, attachment, pool, power, rule]
            .into_iter()
            .chain(usages)
            .chain(plain)
        {
            assert!(owns(&name), "{name}");
            assert!(name.len() <= 63, "{name}");
        }
    }

    /// The function desires what it keeps: kept resources of another step would come back
    /// after that step deleted them.
    #[test]
    fn resources_of_other_steps_are_left_to_them() {
        for name in [
            "bucket",
            "instance",
            "instance-bastion",
            "ssh-keys",
            "ssh-1-2-3-4",
            "ssh-+1-2-3-4-5",
            "ssh-001-2-3-4-5",
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
