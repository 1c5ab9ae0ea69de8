//! The keys of composed resources: which kind each one belongs to.
//!
//! Crossplane never collects a resource whose kind changes under its key, so a
//! key belongs to one kind for ever. Keys are RFC 1123 labels, since Crossplane
//! puts them into names. What cannot change in EC2 is part of the key: another
//! value is another resource.

use sha2::{Digest, Sha256};

/// A workspace's `SpotPool`.
pub const POOL: &str = "pool";
/// A further `SpotPool`, while one that does not fit any more is replaced.
pub const POOL_PREFIX: &str = "pool-";
/// An on-demand `Instance`, by what it is made of.
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
pub const POWER_PREFIX: &str = "power-";
/// In the cluster: the nodes.
pub const STATEFUL_SET: &str = "cluster-stateful-set";
/// Their names.
pub const SERVICE: &str = "cluster-service";
/// Who may reach them.
pub const NETWORK_POLICY: &str = "cluster-network-policy";
/// Who they are to the API server.
pub const SERVICE_ACCOUNT: &str = "cluster-service-account";
/// What that may do.
pub const ROLE: &str = "cluster-role";
/// That it may.
pub const ROLE_BINDING: &str = "cluster-role-binding";
/// Their host keys.
pub const HOST_KEYS: &str = "cluster-host-keys";
/// The programs that they run.
pub const FILES: &str = "cluster-files";
/// The owner's SSH keys.
pub const AUTHORIZED_KEYS: &str = "cluster-authorized-keys";
/// The home of a node, by its number, where it goes with the claim.
pub const NODE_HOME_PREFIX: &str = "cluster-home-";
/// Who uses a node, by its number.
pub const NODE_ACTIVITY_PREFIX: &str = "cluster-activity-";
/// A user's namespace.
pub const NAMESPACE: &str = "user-namespace";
/// What its owner may do in it.
pub const OWNER_ROLE_BINDING: &str = "user-owner-role-binding";
/// How much there may be in it.
pub const QUOTA: &str = "user-quota";
/// What containers in it get that say nothing.
pub const LIMITS: &str = "user-limits";
/// Its queue.
pub const LOCAL_QUEUE: &str = "user-local-queue";
/// What keeps others out.
pub const DEFAULT_DENY: &str = "user-default-deny";
/// What keeps a user with homes from being deleted.
pub const PROTECTION: &str = "user-protection";
/// Where a namespaced workspace is reached, wherever it is placed.
pub const CONNECTION: &str = "workspace-connection";
/// A deletion order, by what is used and by whom.
pub const USAGE_PREFIX: &str = "usage-";

/// The keys of a workspace in the cluster.
const CLUSTER: [&str; 9] = [
    STATEFUL_SET,
    SERVICE,
    NETWORK_POLICY,
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    HOST_KEYS,
    FILES,
    AUTHORIZED_KEYS,
];

/// The keys of a user.
const DEV_USER: [&str; 7] = [
    NAMESPACE,
    OWNER_ROLE_BINDING,
    QUOTA,
    LIMITS,
    LOCAL_QUEUE,
    DEFAULT_DENY,
    PROTECTION,
];

/// Whether this function composes resources under such a key. Resources under
/// any other key are other steps' of the pipeline.
pub fn is_owned(key: &str) -> bool {
    let usage = key
        .strip_prefix(USAGE_PREFIX)
        .and_then(|usage| usage.split_once("-by-"));
    match usage {
        Some((of, by)) => is_plain(of) && is_plain(by),
        None => is_plain(key),
    }
}

/// Whether it is the key of anything but a deletion order.
fn is_plain(key: &str) -> bool {
    let hashed = |prefix: &str| {
        key.strip_prefix(prefix)
            .is_some_and(|hash| hash.len() == 8 && hash.bytes().all(is_hex))
    };
    matches!(key, POOL | SECURITY_GROUP | EGRESS | HOME | CONNECTION)
        || CLUSTER.contains(&key)
        || DEV_USER.contains(&key)
        || [
            POOL_PREFIX,
            INSTANCE_PREFIX,
            ATTACHMENT_PREFIX,
            POWER_PREFIX,
        ]
        .into_iter()
        .any(hashed)
        || is_ssh(key)
        || is_of_node(key)
}

/// Whether it is the key of a part of a workspace in the cluster.
pub fn is_in_cluster(key: &str) -> bool {
    CLUSTER.contains(&key) || is_of_node(key)
}

fn is_of_node(key: &str) -> bool {
    home_of_node(key).is_some() || numbered(NODE_ACTIVITY_PREFIX, key).is_some()
}

/// Whether it is the key of a part of a workspace on EC2.
pub fn is_on_ec2(key: &str) -> bool {
    is_owned(key) && !is_in_cluster(key) && !DEV_USER.contains(&key) && key != CONNECTION
}

/// A key by the hash of what the resource is made of.
pub fn hashed<'a>(prefix: &str, parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // Lengths keep ("ab", "c") apart from ("a", "bc").
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let first = hash.finalize().into_iter().take(4);
    let number = first.fold(0_u32, |number, byte| (number << 8) | u32::from(byte));
    format!("{prefix}{number:08x}")
}

/// The key of the rule that lets a network in.
pub fn ssh(cidr: &str) -> String {
    format!("{SSH_PREFIX}{}", cidr.replace(['.', '/'], "-"))
}

/// The key of a node's home.
pub fn node_home(node: i32) -> String {
    format!("{NODE_HOME_PREFIX}{node}")
}

/// The key of a node's Lease.
pub fn node_activity(node: i32) -> String {
    format!("{NODE_ACTIVITY_PREFIX}{node}")
}

/// The node whose home has the key.
pub fn home_of_node(key: &str) -> Option<i32> {
    numbered(NODE_HOME_PREFIX, key)
}

fn numbered(prefix: &str, key: &str) -> Option<i32> {
    let node: i32 = key.strip_prefix(prefix)?.parse().ok()?;
    (node >= 0 && format!("{prefix}{node}") == key).then_some(node)
}

/// The key of the `Usage` that keeps `of` until `by` is gone.
pub fn usage(of: &str, by: &str) -> String {
    format!("{USAGE_PREFIX}{of}-by-{by}")
}

/// Whether the key is that of a rule for one network.
pub fn is_ssh(key: &str) -> bool {
    key.strip_prefix(SSH_PREFIX).is_some_and(|network| {
        let numbers: Vec<&str> = network.split('-').collect();
        let as_written = |n: &&str| {
            n.parse::<u8>()
                .is_ok_and(|number| number.to_string() == **n)
        };
        numbers.len() == 5 && numbers.iter().all(as_written)
    })
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_made_here_is_recognised() {
        let instance = hashed(INSTANCE_PREFIX, ["g5.xlarge", "ami-1"]);
        let attachment = hashed(ATTACHMENT_PREFIX, ["i-1"]);
        let pool = hashed(POOL_PREFIX, ["g5.xlarge"]);
        let power = hashed(POWER_PREFIX, ["i-1"]);
        let rule = ssh("203.0.113.0/24");
        assert_eq!(rule, "ssh-203-0-113-0-24");
        let usages = [
            usage(&instance, &attachment),
            usage(SECURITY_GROUP, &instance),
            usage(HOME, &attachment),
        ];
        let plain = [POOL, SECURITY_GROUP, EGRESS, HOME, CONNECTION].map(str::to_owned);
        for key in [instance, attachment, pool, power, rule]
            .into_iter()
            .chain(usages)
            .chain(plain)
        {
            assert!(is_owned(&key), "{key}");
            assert!(key.len() <= 63, "{key}");
        }
    }

    /// Holding a resource of another step would bring back what it deleted.
    #[test]
    fn resources_of_other_steps_are_left_to_them() {
        for key in [
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
            assert!(!is_owned(key), "{key}");
        }
    }

    #[test]
    fn a_connection_secret_says_nothing_of_where_the_workspace_is() {
        assert!(!is_on_ec2(CONNECTION) && !is_in_cluster(CONNECTION));
    }

    #[test]
    fn moving_a_letter_between_parts_gives_another_key() {
        let one = hashed("", ["ab", "c"]);
        assert_ne!(one, hashed("", ["a", "bc"]));
        assert_eq!(one, hashed("", ["ab", "c"]));
    }
}
