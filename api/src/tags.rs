//! Tag keys by which the provider recognises its own resources in EC2.
//!
//! The keys hold no slash: EC2 refuses tags with a slash in their keys in instance metadata. The
//! provider never changes or terminates a resource without [`POOL_UID`] and [`CLUSTER`].

use std::collections::BTreeMap;

/// Identifies the control plane: the UID of the provider's identity `ConfigMap`.
pub const CLUSTER: &str = "gpu.platform.acme.io:cluster";
/// Identity of the `SpotPool` that owns the EC2 resource: its first UID (see
/// [`crate::managed::IDENTITY`]).
pub const POOL_UID: &str = "gpu.platform.acme.io:pool-uid";
/// `namespace/name` of the owning pool, for people.
pub const POOL: &str = "gpu.platform.acme.io:pool";
/// Number of the launch that created the instance. The pool counts its launches.
pub const LAUNCH: &str = "gpu.platform.acme.io:launch";
/// Generation of the launch template. Set on the template and on its instances.
pub const GENERATION: &str = "gpu.platform.acme.io:generation";
/// Identity of the lease that has the instance: its first UID.
pub const LEASE: &str = "gpu.platform.acme.io:lease";
/// Digest of the tags that the lease asks for on the instance.
pub const LEASE_DIGEST: &str = "gpu.platform.acme.io:lease-digest";
/// Prefix of the tags with the public keys that may log in: see [`authorized_keys`].
pub const AUTHORIZED_KEY: &str = "gpu.platform.acme.io:authorized-key";
/// `namespace/name` of the lease, for people and cost reports.
pub const LEASE_NAME: &str = "gpu.platform.acme.io:lease-name";
/// Number of the pool's home volume. Set on home volumes and on snapshots for their copies. A
/// volume with this tag outlives instances.
pub const HOME: &str = "gpu.platform.acme.io:home";
/// Id of the volume from which a home volume is copied.
pub const HOME_COPY_OF: &str = "gpu.platform.acme.io:home-copy-of";
/// When the pool of a home volume was deleted while the volume was kept.
pub const HOME_KEPT: &str = "gpu.platform.acme.io:home-kept";
/// Owner of the workspace or lease.
pub const OWNER: &str = "gpu.platform.acme.io:owner";
/// EC2's own tag for the display name.
pub const NAME: &str = "Name";

/// Tags under this prefix are the provider's; a spec may not set them.
pub const RESERVED_PREFIX: &str = "gpu.platform.acme.io:";

/// The most tags of a spec and tags with public keys on one instance: EC2's limit of 50 tags, minus
/// those of the provider and of an agent's report.
pub const SPEC_AND_KEYS_LIMIT: usize = 42;

/// EC2's limit for the key of a tag, in characters.
pub const KEY_LIMIT: usize = 128;
/// EC2's limit for the value of a tag, in characters.
pub const VALUE_LIMIT: usize = 256;

/// The tags that hold public keys: `…:authorized-key-1` and so on. A key that is too long for one
/// tag goes on in `…:authorized-key-1-2` and so on.
pub fn authorized_keys(keys: &[String]) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::new();
    for (number, key) in (1..).zip(keys) {
        // A key in the form that OpenSSH writes is ASCII, so that a byte is a character.
        let parts = key.as_bytes().chunks(VALUE_LIMIT);
        for (part, text) in (1..).zip(parts) {
            let name = match part {
                1 => format!("{AUTHORIZED_KEY}-{number}"),
                part => format!("{AUTHORIZED_KEY}-{number}-{part}"),
            };
            tags.insert(name, String::from_utf8_lossy(text).into_owned());
        }
    }
    tags
}

/// The namespace and name of an object as the value of a tag, for people. Together they can be longer
/// than a value: then the end of the name is left out.
pub fn namespaced_name(namespace: &str, name: &str) -> String {
    let full = format!("{namespace}/{name}");
    full.chars().take(VALUE_LIMIT).collect()
}

/// Whether an instance can read a tag with this key at the metadata service. EC2 refuses instances
/// with others (`InvalidParameterValue`).
pub fn is_readable(key: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "+-=.,_:@".contains(c);
    key.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_make_a_tag_that_ec2_takes() {
        let (namespace, name) = ("n".repeat(63), "p".repeat(253));
        assert_eq!(namespaced_name(&namespace, &name).len(), VALUE_LIMIT);
        assert_eq!(namespaced_name("team", "pool"), "team/pool");
    }

    #[test]
    fn a_key_that_one_tag_cannot_hold_goes_on_in_the_next() {
        let long = format!("ssh-rsa {}", "A".repeat(600));
        let tags = authorized_keys(&["ssh-ed25519 AAAA".to_owned(), long.clone()]);
        let names: Vec<_> = tags
            .keys()
            .map(|name| &name[AUTHORIZED_KEY.len()..])
            .collect();
        assert_eq!(names, ["-1", "-2", "-2-2", "-2-3"]);
        assert!(tags.values().all(|value| value.len() <= VALUE_LIMIT));
        let of = |name: &str| tags[&format!("{AUTHORIZED_KEY}{name}")].as_str();
        assert_eq!([of("-2"), of("-2-2"), of("-2-3")].concat(), long);
    }
}
