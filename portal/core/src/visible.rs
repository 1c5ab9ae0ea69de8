//! Whose claims a person sees.

use std::collections::BTreeSet;

/// The namespaces whose claims a person may list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    /// All of the cluster.
    Everywhere,
    /// These.
    In(BTreeSet<String>),
}

impl Visible {
    /// One namespace.
    pub fn only(namespace: &str) -> Self {
        Self::In(BTreeSet::from([namespace.to_owned()]))
    }

    /// None.
    pub fn nothing() -> Self {
        Self::In(BTreeSet::new())
    }

    /// Whether the claims of a namespace are among them.
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::In(namespaces) => namespaces.contains(namespace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_their_namespaces_only() {
        assert!(Visible::only("dev-alice").has("dev-alice"));
        assert!(!Visible::only("dev-alice").has("dev-alice-2"));
        assert!(!Visible::nothing().has(""));
        assert!(Visible::Everywhere.has("dev-bob"));
    }
}
