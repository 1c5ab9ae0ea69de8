//! What a function asks Crossplane to fetch.

/// Something to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The name under which the answer comes.
    pub name: String,
    /// The API version.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Which ones.
    pub selector: Selector,
}

/// Which resources of a kind are to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The cluster-scoped one of that name.
    Named(String),
    /// Every one.
    Every {
        /// Of that namespace; of all namespaces for none.
        namespace: Option<String>,
    },
    /// The cluster-scoped composites whose claims are in a namespace.
    Claimed {
        /// The namespace.
        namespace: String,
    },
    /// All of a namespace that carry a label.
    Labelled {
        /// The namespace.
        namespace: String,
        /// The label's key.
        key: &'static str,
        /// The label's value.
        value: String,
    },
}
