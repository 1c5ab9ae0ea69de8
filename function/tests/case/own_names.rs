//! The composition resource names that this function uses. The list repeats them on purpose: a test
//! must not take its expectation of a name from the function.

const NAMES: [&str; 22] = [
    "pool",
    "security-group",
    "egress",
    "home",
    "workspace-connection",
    "workspace-record",
    "cluster-stateful-set",
    "cluster-service",
    "cluster-network-policy",
    "cluster-service-account",
    "cluster-role",
    "cluster-role-binding",
    "cluster-host-keys",
    "cluster-files",
    "cluster-authorized-keys",
    "user-namespace",
    "user-owner-role-binding",
    "user-quota",
    "user-limits",
    "user-local-queue",
    "user-default-deny",
    "user-protection",
];
/// The prefixes of names that end with a hash of eight hexadecimal digits.
const HASHED: [&str; 4] = ["pool-", "instance-", "home-attachment-", "power-"];
/// The prefixes of names that end with the number of a pod.
const NUMBERED: [&str; 2] = ["cluster-home-", "cluster-activity-"];

/// Whether the function owns a composed resource of this name.
pub fn is_own(name: &str) -> bool {
    match name
        .strip_prefix("usage-")
        .and_then(|usage| usage.split_once("-by-"))
    {
        Some((of, by)) => is_plain(of) && is_plain(by),
        None => is_plain(name),
    }
}

/// The number of the pod to which the home of this name belongs.
pub fn home_of_pod(name: &str) -> Option<i32> {
    name.strip_prefix(NUMBERED[0])?.parse().ok()
}

/// Whether the name is that of an SSH rule for one network or security group, such as
/// `ssh-203-0-113-0-24` and `ssh-sg-0123456789abcdef0`.
pub fn is_ssh_rule(name: &str) -> bool {
    name.strip_prefix("ssh-").is_some_and(|source| {
        let parts: Vec<&str> = source.split('-').collect();
        let is_written = |part: &&str| part.parse::<u8>().is_ok_and(|n| n.to_string() == **part);
        match parts[..] {
            ["sg", id] => id.len() <= 17 && u128::from_str_radix(id, 16).is_ok() && id.len() >= 8,
            _ => parts.len() == 5 && parts.iter().all(is_written),
        }
    })
}

fn is_plain(name: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let has_hash = |prefix: &&str| {
        let hash = name.strip_prefix(*prefix);
        hash.is_some_and(|hash| hash.len() == 8 && hash.chars().all(is_digit))
    };
    let has_number = |prefix: &&str| {
        let number = name.strip_prefix(*prefix);
        number.is_some_and(|n| n.parse::<u16>().is_ok_and(|number| number.to_string() == n))
    };
    NAMES.contains(&name)
        || HASHED.iter().any(has_hash)
        || NUMBERED.iter().any(has_number)
        || is_ssh_rule(name)
}
