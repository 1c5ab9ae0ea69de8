//! Namespaces in which a person may have rights: those with a `RoleBinding` that names them.
//!
//! It decides nothing. It only keeps the number of questions small: a person is asked about in the namespaces
//! that name them or one of their groups, and not in all.

use std::collections::{BTreeMap, BTreeSet};

use crate::identity::Person;

/// A group that Kubernetes gives to everybody who is logged in.
const EVERYBODY: &str = "system:authenticated";

/// The subjects of all `RoleBinding`s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(BTreeMap<Binding, Vec<Subject>>);

/// A `RoleBinding`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Whom a binding names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A user.
    User(String),
    /// A group.
    Group(String),
}

impl Bindings {
    /// Takes a binding that is new or has changed.
    pub fn put(&mut self, binding: Binding, subjects: Vec<Subject>) {
        self.0.insert(binding, subjects);
    }

    /// Takes a binding that is gone.
    pub fn remove(&mut self, binding: &Binding) {
        self.0.remove(binding);
    }

    /// The namespaces with a binding that names a person or one of their groups.
    pub fn namespaces(&self, person: &Person) -> BTreeSet<String> {
        let named = self
            .0
            .iter()
            .filter(|(_, subjects)| subjects.iter().any(|subject| subject.is(person)));
        named
            .map(|(binding, _)| binding.namespace.clone())
            .collect()
    }
}

impl Subject {
    fn is(&self, person: &Person) -> bool {
        match self {
            Self::User(name) => *name == person.user,
            Self::Group(name) => name == EVERYBODY || person.groups.contains(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(namespace: &str, name: &str) -> Binding {
        Binding {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn a_person_is_asked_about_where_a_binding_names_them() {
        let mut bindings = Bindings::default();
        bindings.put(binding("a", "x"), vec![Subject::User("alice".into())]);
        bindings.put(binding("b", "x"), vec![Subject::Group("vision".into())]);
        bindings.put(binding("c", "x"), vec![Subject::User("vision".into())]);
        bindings.put(binding("d", "x"), vec![Subject::Group("alice".into())]);
        bindings.put(binding("e", "x"), vec![Subject::Group(EVERYBODY.into())]);
        let alice = Person {
            user: "alice".into(),
            groups: vec!["vision".into()],
            email: None,
        };
        let named: Vec<_> = bindings.namespaces(&alice).into_iter().collect();
        assert_eq!(named, ["a", "b", "e"]);
        bindings.remove(&binding("b", "x"));
        bindings.put(binding("a", "x"), vec![]);
        let named: Vec<_> = bindings.namespaces(&alice).into_iter().collect();
        assert_eq!(named, ["e"]);
    }
}
