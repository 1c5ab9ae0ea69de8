//! Who may log in: the people that the platform knows, as sshd sees them.

use std::collections::BTreeMap;

use devctl_core::name::Name;
use devctl_core::object::{list, text};
use serde_json::Value;

use crate::certificates::Shown;

/// A person with a namespace, from a `DevUser`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The namespace that belongs to the person.
    pub namespace: Name,
    /// The person's public keys, each as `TYPE KEY`.
    pub keys: Vec<Key>,
}

/// A public key, without its comment and without options.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    kind: String,
    blob: String,
}

impl Key {
    /// A key as sshd gives it to programs (`sshd_config(5)`, "TOKENS", `%t` and `%k`).
    pub fn new(kind: &str, blob: &str) -> Option<Self> {
        let is_kind = |c: char| c.is_ascii_alphanumeric() || "-@.".contains(c);
        let is_blob = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        let fits = !kind.is_empty() && kind.chars().all(is_kind);
        let fits = fits && !blob.is_empty() && blob.chars().all(is_blob);
        fits.then(|| Self {
            kind: kind.to_owned(),
            blob: blob.to_owned(),
        })
    }

    /// A key as a `DevUser` has it: `TYPE KEY COMMENT`.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        Self::new(fields.next()?, fields.next()?)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.blob)
    }
}

/// By what a person logs in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    /// A public key of theirs.
    Key(Key),
    /// A certificate of an authority that the platform trusts.
    Certificate(Shown),
}

impl std::fmt::Display for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Certificate(shown) => shown.fmt(f),
        }
    }
}

/// Everybody who may log in, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts(BTreeMap<Name, Person>);

impl Accounts {
    /// Reads `DevUser`s. A person who is suspended, or who has no namespace yet, may not log in.
    pub fn new<'a>(users: impl IntoIterator<Item = &'a Value>) -> Self {
        Self(users.into_iter().filter_map(person).collect())
    }

    /// The person of a name.
    pub fn get(&self, name: &str) -> Option<&Person> {
        self.0.get(&name.parse().ok()?)
    }

    /// The person of a name, if they may log in by this. A certificate says by itself whose it is.
    pub fn admitted(&self, name: &str, by: &Credential) -> Option<&Person> {
        self.get(name).filter(|person| match by {
            Credential::Key(key) => person.keys.contains(key),
            Credential::Certificate(_) => true,
        })
    }
}

fn person(user: &Value) -> Option<(Name, Person)> {
    let is_suspended = user.pointer("/spec/suspended").and_then(Value::as_bool) == Some(true);
    let is_deleted = text(user, "/metadata/deletionTimestamp").is_some();
    if is_suspended || is_deleted {
        return None;
    }
    let name = text(user, "/metadata/name")?.parse().ok()?;
    let namespace = text(user, "/status/namespace")?.parse().ok()?;
    let keys = list(user, "/spec/publicKeys").iter();
    let keys = keys.filter_map(|key| Key::read(key.as_str()?));
    Some((
        name,
        Person {
            namespace,
            keys: keys.collect(),
        },
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(name: &str, spec: &Value) -> Value {
        json!({"metadata": {"name": name}, "spec": spec, "status": {"namespace": format!("dev-{name}")}})
    }

    fn key(blob: &str) -> Credential {
        Credential::Key(Key::new("ssh-ed25519", blob).unwrap())
    }

    #[test]
    fn a_key_opens_the_account_of_its_owner_only() {
        let users = [
            user(
                "alice",
                &json!({"publicKeys": ["ssh-ed25519 AAA alice@laptop"]}),
            ),
            user("bob", &json!({"publicKeys": ["ssh-ed25519 BBB"]})),
        ];
        let accounts = Accounts::new(&users);
        let opened = |name: &str, blob: &str| accounts.admitted(name, &key(blob));
        assert_eq!(
            opened("alice", "AAA").unwrap().namespace.as_str(),
            "dev-alice"
        );
        assert_eq!(opened("bob", "AAA"), None);
        assert_eq!(opened("alice", "AA"), None);
        assert_eq!(opened("root", "AAA"), None);
    }

    #[test]
    fn a_suspended_person_is_as_unknown_as_a_stranger() {
        let mut suspended = user(
            "alice",
            &json!({"publicKeys": ["ssh-ed25519 AAA"], "suspended": true}),
        );
        assert_eq!(Accounts::new([&suspended]), Accounts::default());
        suspended["spec"]["suspended"] = json!(false);
        assert!(Accounts::new([&suspended]).get("alice").is_some());
    }

    #[test]
    fn a_certificate_opens_no_account_of_somebody_who_is_gone() {
        let mut alice = user("alice", &json!({"publicKeys": []}));
        let shown = Credential::Certificate(Shown {
            authority: "SHA256:x".into(),
            id: "alice@idp".into(),
            serial: 7,
        });
        let accounts = Accounts::new([&alice]);
        assert!(accounts.admitted("alice", &shown).is_some());
        assert_eq!(accounts.admitted("bob", &shown), None);
        alice["spec"]["suspended"] = json!(true);
        assert_eq!(Accounts::new([&alice]).admitted("alice", &shown), None);
    }

    #[test]
    fn no_key_adds_a_line_or_an_option_to_authorized_keys() {
        let keys = [
            "ssh-ed25519 AAA\",command=\"sh",
            "command=\"sh\" ssh-ed25519 AAA",
        ];
        let accounts = Accounts::new(&[user("a", &json!({"publicKeys": keys}))]);
        assert_eq!(accounts.get("a").unwrap().keys, []);
    }
}
