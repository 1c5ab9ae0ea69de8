//! The `DevUser` of a person.

use devctl_core::name::Name;
use devctl_core::object::{list, text};
use serde_json::Value;

use crate::identity::Person;

/// A `DevUser` with a namespace of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name, which is the `owner` of the person's claims.
    pub owner: String,
    /// The namespace.
    pub namespace: Name,
}

/// Why a person has no account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAccount {
    /// No `DevUser` names the person.
    #[error("no DevUser has the User {0} as its subject: ask the platform team for one")]
    Unknown(String),
    /// Several `DevUser`s name the person.
    #[error("several DevUsers have the User {user} as their subject: {}", .names.join(", "))]
    Several {
        /// The name of the person.
        user: String,
        /// The names of the `DevUser`s.
        names: Vec<String>,
    },
    /// The platform team has suspended the person.
    #[error("the DevUser {0} is suspended: ask the platform team")]
    Suspended(String),
    /// Crossplane has not made the namespace yet.
    #[error("the DevUser {0} has no namespace yet: try again in a moment")]
    NotReady(String),
}

/// The account of a person. A `DevUser` is a person's if one of its subjects is their User; a group gives
/// rights, and no account.
pub fn account<'a>(
    person: &Person,
    users: impl IntoIterator<Item = &'a Value>,
) -> Result<Account, NoAccount> {
    let mine: Vec<&Value> = users
        .into_iter()
        .filter(|user| is_of(user, &person.user))
        .collect();
    let name = |user: &Value| text(user, "/metadata/name").unwrap_or_default().to_owned();
    let user = match mine.as_slice() {
        [] => return Err(NoAccount::Unknown(person.user.clone())),
        [one] => *one,
        several => {
            let mut names: Vec<_> = several.iter().map(|user| name(user)).collect();
            names.sort_unstable();
            return Err(NoAccount::Several {
                user: person.user.clone(),
                names,
            });
        }
    };
    if user.pointer("/spec/suspended") == Some(&Value::Bool(true)) {
        return Err(NoAccount::Suspended(name(user)));
    }
    let namespace = text(user, "/status/namespace").and_then(|name| name.parse().ok());
    match namespace {
        Some(namespace) => Ok(Account {
            owner: name(user),
            namespace,
        }),
        None => Err(NoAccount::NotReady(name(user))),
    }
}

/// Whether a `DevUser` is the one of a User. Without subjects, it is of the User with its name.
fn is_of(user: &Value, name: &str) -> bool {
    if text(user, "/metadata/deletionTimestamp").is_some() {
        return false;
    }
    let subjects = list(user, "/spec/subjects");
    if subjects.is_empty() {
        return text(user, "/metadata/name") == Some(name);
    }
    subjects
        .iter()
        .any(|one| text(one, "/kind") == Some("User") && text(one, "/name") == Some(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn person(user: &str, groups: &[&str]) -> Person {
        Person {
            user: user.into(),
            groups: groups.iter().map(|&group| group.into()).collect(),
            email: None,
        }
    }

    fn user(name: &str, subjects: &Value) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {"subjects": subjects},
            "status": {"namespace": format!("dev-{name}")},
        })
    }

    #[test]
    fn a_person_has_the_dev_user_that_names_them() {
        let users = [
            user("alice", &json!([{"kind": "User", "name": "alice@acme.io"}])),
            user("bob", &json!([])),
        ];
        let alice = account(&person("alice@acme.io", &[]), &users).unwrap();
        assert_eq!(
            (alice.owner.as_str(), alice.namespace.as_str()),
            ("alice", "dev-alice")
        );
        assert_eq!(account(&person("bob", &[]), &users).unwrap().owner, "bob");
        // The DevUser `alice` has another subject, so the User `alice` has no DevUser.
        let unknown = account(&person("alice", &[]), &users).unwrap_err();
        assert_eq!(unknown, NoAccount::Unknown("alice".into()));
    }

    #[test]
    fn a_group_gives_no_account() {
        let users = [user(
            "vision",
            &json!([{"kind": "Group", "name": "vision"}]),
        )];
        for name in ["alice", "vision"] {
            let found = account(&person(name, &["vision"]), &users);
            assert_eq!(found, Err(NoAccount::Unknown(name.into())));
        }
    }

    #[test]
    fn a_person_of_two_dev_users_is_told_both() {
        let subject = json!([{"kind": "User", "name": "alice"}]);
        let users = [user("b", &subject), user("a", &subject)];
        let several = account(&person("alice", &[]), &users).unwrap_err();
        assert!(several.to_string().ends_with("subject: a, b"));
    }

    #[test]
    fn who_is_suspended_deleted_or_without_a_namespace_has_no_account() {
        let mut suspended = user("alice", &json!([]));
        suspended["spec"]["suspended"] = json!(true);
        let found = account(&person("alice", &[]), [&suspended]);
        assert_eq!(found, Err(NoAccount::Suspended("alice".into())));
        let mut fresh = user("alice", &json!([]));
        fresh["status"] = json!({});
        let found = account(&person("alice", &[]), [&fresh]);
        assert_eq!(found, Err(NoAccount::NotReady("alice".into())));
        let mut deleted = user("alice", &json!([]));
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let found = account(&person("alice", &[]), [&deleted]);
        assert_eq!(found, Err(NoAccount::Unknown("alice".into())));
    }
}
