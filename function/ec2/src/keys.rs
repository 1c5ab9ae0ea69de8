//! Where an instance finds the public keys that may log in.
//!
//! From behaviour version v3 on, sshd reads keys from the instance's tags at each login, so that a
//! removed key opens nothing on a running instance. Before, keys are in the user data of the first
//! boot.

use api::policy::{BehaviourVersion, WorkspacePolicy};
use api::tags;
use function_runtime::validation::{Violation, Violations};
use function_workspace::public_keys::PublicKeys;
use serde_json::Value;

/// The types of keys in tags. They are those of a `SpotPool`'s `authorizedKeys`.
const TYPES: [&str; 7] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];
/// The longest key of a `SpotPool`, in characters.
const LONGEST: usize = 4096;

/// The public keys of a workspace, by the place where its instance finds them.
pub struct Placed {
    /// Lines of `authorized_keys` in the user data.
    pub in_user_data: Vec<String>,
    /// Keys without comments, in tags; none before v3.
    pub in_tags: Option<Vec<String>>,
}

/// Decides the place of each key. Certificate authorities, keys with options and keys of other types
/// are in the user data: a tag cannot hold quotes.
///
/// # Errors
///
/// The keys need more tags than an instance may have.
pub fn placed(keys: PublicKeys, policy: &WorkspacePolicy) -> Result<Placed, Violations> {
    if !reads_tags(policy.behaviour_version) {
        return Ok(Placed {
            in_user_data: keys.lines(),
            in_tags: None,
        });
    }
    let mut in_user_data = keys.authorities;
    let mut in_tags: Vec<String> = Vec::new();
    for key in keys.keys {
        match bare(&key) {
            Some(bare) if in_tags.contains(&bare) => {}
            Some(bare) => in_tags.push(bare),
            None => in_user_data.push(key),
        }
    }
    // Beside those of the policy, a workspace has the tags `owner` and `workspace`.
    let others = policy.instance.tags.len() + 2;
    let needed = tags::authorized_keys(&in_tags).len();
    if others + needed > tags::SPEC_AND_KEYS_LIMIT {
        let problem = format!(
            "all keys of the owner need {needed} tags of EC2, one for each {} characters, and there \
             is room for {}: remove some, or use shorter ones such as ssh-ed25519",
            tags::VALUE_LIMIT,
            tags::SPEC_AND_KEYS_LIMIT.saturating_sub(others)
        );
        return Err(Violation::new("spec.parameters.ssh.publicKeys", problem).into());
    }
    Ok(Placed {
        in_user_data,
        in_tags: Some(in_tags),
    })
}

/// Refuses tags that EC2 refuses: tags that are too long and, on instances that read their tags,
/// keys that EC2 does not show to an instance.
pub fn tags_are_valid(policy: &WorkspacePolicy) -> Result<(), Violation> {
    let is_read = reads_tags(policy.behaviour_version);
    for (key, value) in &policy.instance.tags {
        let refused = |path: &str, why: String| Err(Violation::new(path, why));
        if !(1..=tags::KEY_LIMIT).contains(&key.chars().count()) {
            let limit = tags::KEY_LIMIT;
            let why = format!("the key of a tag has 1 to {limit} characters in EC2");
            return refused("input.instance.tags", why);
        }
        let path = format!("input.instance.tags[{key}]");
        if value.chars().count() > tags::VALUE_LIMIT {
            let limit = tags::VALUE_LIMIT;
            let why = format!("the value of a tag has at most {limit} characters in EC2");
            return refused(&path, why);
        }
        if is_read && !tags::is_readable(key) {
            let why = "from behaviour version v3 on, instances read their tags, and EC2 takes \
                       letters, digits and +-=.,_:@ only in the key of such a tag";
            return refused(&path, why.to_owned());
        }
    }
    Ok(())
}

/// Whether instances read keys from their tags.
pub fn reads_tags(version: BehaviourVersion) -> bool {
    match version {
        BehaviourVersion::V1 | BehaviourVersion::V2 => false,
        BehaviourVersion::V3 => true,
    }
}

/// Removes the keys in tags from a desired `SpotPool` or `Instance`. Keys in user data are those of
/// the first boot.
pub fn remove(machine: &mut Value) {
    let parameters = machine.pointer_mut("/spec/forProvider");
    let Some(parameters) = parameters.and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(keys) = parameters.get_mut("authorizedKeys") {
        *keys = Value::Array(Vec::new());
    }
    if let Some(tags) = parameters.get_mut("tags").and_then(Value::as_object_mut) {
        tags.retain(|tag, _| !tag.starts_with(tags::AUTHORIZED_KEY));
    }
}

/// A key without its comment; none if it has options or another type.
fn bare(key: &str) -> Option<String> {
    let mut words = key.split_whitespace();
    let (kind, blob) = (words.next()?, words.next()?);
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let bare = format!("{kind} {blob}");
    let is_usual = TYPES.contains(&kind) && blob.chars().all(is_base64) && bare.len() <= LONGEST;
    is_usual.then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(version: &str) -> WorkspacePolicy {
        let policy = serde_json::json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": version,
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"],
        });
        serde_json::from_value(policy).unwrap()
    }

    fn keys(keys: &[&str]) -> PublicKeys {
        PublicKeys {
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
            authorities: vec!["cert-authority,principals=\"alice\" ssh-ed25519 CA".into()],
        }
    }

    #[test]
    fn a_key_that_may_be_removed_is_in_no_user_data() {
        let asked = keys(&[
            "ssh-ed25519 AAAA laptop",
            "ssh-ed25519 AAAA desktop",
            "from=\"10.0.0.0/8\" ssh-ed25519 BBBB",
            "ssh-dss CCCC old",
        ]);
        let placed = super::placed(asked.clone(), &policy("v3")).unwrap();
        assert_eq!(placed.in_tags.unwrap(), ["ssh-ed25519 AAAA"]);
        let expected = [&asked.authorities[0], &asked.keys[2], &asked.keys[3]];
        assert_eq!(placed.in_user_data.iter().collect::<Vec<_>>(), expected);
        let before = super::placed(asked.clone(), &policy("v2")).unwrap();
        assert_eq!((before.in_user_data, before.in_tags), (asked.lines(), None));
    }

    #[test]
    fn a_machine_without_keys_keeps_everything_else() {
        let mut pool = serde_json::json!({"spec": {"forProvider": {
            "authorizedKeys": ["ssh-ed25519 AAAA"], "tags": {"owner": "alice"}
        }}});
        remove(&mut pool);
        let expected = serde_json::json!({"authorizedKeys": [], "tags": {"owner": "alice"}});
        assert_eq!(pool["spec"]["forProvider"], expected);
        let mut tags = tags::authorized_keys(&[format!("ssh-rsa {}", "A".repeat(600))]);
        tags.insert("owner".to_owned(), "alice".to_owned());
        let mut instance = serde_json::json!({"spec": {"forProvider": {"tags": tags}}});
        remove(&mut instance);
        let expected = serde_json::json!({"tags": {"owner": "alice"}});
        assert_eq!(instance["spec"]["forProvider"], expected);
    }

    #[test]
    fn more_keys_than_tags_are_refused_with_the_room_that_there_is() {
        let long = format!("ssh-rsa {}", "A".repeat(700));
        let asked: Vec<_> = (0..14).map(|n| format!("{long}{n}")).collect();
        let asked: Vec<_> = asked.iter().map(String::as_str).collect();
        assert!(super::placed(keys(&asked[..13]), &policy("v3")).is_ok());
        let refused = super::placed(keys(&asked), &policy("v3")).err().unwrap();
        let text = format!("{refused}");
        assert!(
            text.contains("need 42 tags") && text.contains("room for 40"),
            "{text}"
        );
    }

    #[test]
    fn a_policy_with_tags_that_ec2_refuses_is_refused() {
        let refusal = |version: &str, key: &str, value: &str| {
            let mut policy = policy(version);
            policy.instance.tags = [(key.to_owned(), value.to_owned())].into();
            tags_are_valid(&policy).map_err(|violation| format!("{violation:?}"))
        };
        let unreadable = refusal("v3", "cost/centre", "7").unwrap_err();
        assert!(unreadable.contains("input.instance.tags[cost/centre]"));
        assert!(refusal("v2", "cost/centre", "7").is_ok());
        assert!(refusal("v2", &"ä".repeat(128), &"ä".repeat(256)).is_ok());
        let long = refusal("v2", "team", &"x".repeat(257)).unwrap_err();
        assert!(long.contains("input.instance.tags[team]"), "{long}");
        assert!(refusal("v2", &"x".repeat(129), "7").is_err());
        assert!(refusal("v2", "", "7").is_err());
    }
}
