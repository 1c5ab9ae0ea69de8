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
/// A deletion order, by what is used and by whom.
pub const USAGE_PREFIX: &str = "usage-";

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
    matches!(key, POOL | SECURITY_GROUP | EGRESS | HOME)
        || [POOL_PREFIX, INSTANCE_PREFIX, ATTACHMENT_PREFIX]
            .into_iter()
            .any(hashed)
        || is_ssh(key)
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
        let rule = ssh("203.0.113.0/24");
        assert_eq!(rule, "ssh-203-0-113-0-24");
        let usages = [
            usage(&instance, &attachment),
            usage(SECURITY_GROUP, &instance),
            usage(HOME, &attachment),
        ];
        let plain = [POOL, SECURITY_GROUP, EGRESS, HOME].map(str::to_owned);
        for key in [instance, attachment, pool, rule]
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
    fn moving_a_letter_between_parts_gives_another_key() {
        let one = hashed("", ["ab", "c"]);
        assert_ne!(one, hashed("", ["a", "bc"]));
        assert_eq!(one, hashed("", ["ab", "c"]));
    }
}
