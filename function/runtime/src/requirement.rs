//! Resources that a function asks Crossplane to fetch.

/// A requirement for one or more resources of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the requirement, which is also the key of the answer.
    pub name: String,
    /// The API version of the resources.
    pub api_version: &'static str,
    /// The kind of the resources.
    pub kind: &'static str,
    /// The resources to fetch.
    pub selector: Selector,
}

/// The resources to fetch of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The cluster-scoped resource with this name.
    Named(String),
    /// The resource with this name in a namespace.
    NamedIn {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// All resources of the kind.
    Every {
        /// Only resources in this namespace; none for all namespaces.
        namespace: Option<String>,
    },
    /// The cluster-scoped composites whose claims are in a namespace.
    Claimed {
        /// The namespace of the claims.
        namespace: String,
    },
    /// The resources in a namespace that have a label.
    Labelled {
        /// The namespace.
        namespace: String,
        /// The label's key.
        key: &'static str,
        /// The label's value.
        value: String,
    },
}
