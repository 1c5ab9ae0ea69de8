//! The observed composite (XR): a legacy composite with a claim, or a namespaced one.

use std::fmt;

use crate::json::Json;
use crate::object::{Observed, ObservedObject};

/// An observed composite.
#[derive(Clone, Copy, Debug)]
pub struct Composite<'a>(&'a Json<'a>);

/// Namespace and name of a workspace, as users know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The namespace of all composed resources.
    pub namespace: String,
    /// The name of the claim, or of a composite without a claim.
    pub name: String,
}

/// Name and UID of a composite, which identify it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompositeId {
    /// The name of the composite.
    pub name: String,
    /// The UID of the composite; empty if it is rendered without a cluster.
    pub uid: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl<'a> Composite<'a> {
    /// Wraps the composite of a request.
    pub fn new(composite: &'a Json<'a>) -> Self {
        Self(composite)
    }

    /// The name of the composite itself, for logs.
    pub fn name(self) -> &'a str {
        self.text(&["metadata", "name"])
    }

    /// Name and UID of this composite.
    pub fn id(self) -> CompositeId {
        CompositeId {
            name: self.name().to_owned(),
            uid: self.text(&["metadata", "uid"]).to_owned(),
        }
    }

    /// The namespace of the composite; none for a legacy composite, which is cluster-scoped.
    pub fn namespace(self) -> Option<&'a str> {
        let namespace = self.text(&["metadata", "namespace"]);
        (!namespace.is_empty()).then_some(namespace)
    }

    /// Namespace and name as users know them; none for a legacy composite without a claim.
    ///
    /// A legacy composite is cluster-scoped and names its claim in `spec.claimRef`. A modern
    /// composite is namespaced, and Crossplane's own fields are under `spec.crossplane`.
    pub fn origin(self) -> Option<Origin> {
        let own = (self.namespace().unwrap_or_default(), self.name());
        let claim = (
            self.text(&["spec", "claimRef", "namespace"]),
            self.text(&["spec", "claimRef", "name"]),
        );
        [own, claim]
            .into_iter()
            .find(|(namespace, _)| !namespace.is_empty())
            .map(|(namespace, name)| Origin {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
    }

    /// The kind of the composite.
    pub fn kind(self) -> &'a str {
        self.text(&["kind"])
    }

    /// An annotation of the composite. Crossplane copies annotations from the claim.
    pub fn annotation(self, key: &str) -> Option<&'a str> {
        self.at(&["metadata", "annotations", key])?
            .as_str()
            .filter(|value| !value.is_empty())
    }

    /// A condition, as the last call left it.
    pub fn condition(self, type_: &str) -> Option<Observed<'a>> {
        ObservedObject::new(self.0).condition(type_)
    }

    /// The reason of a condition, as the last call left it.
    pub fn condition_reason(self, type_: &str) -> Option<&'a str> {
        self.condition(type_).map(|condition| condition.reason)
    }

    /// The value at a path of keys.
    pub fn at(self, path: &[&str]) -> Option<&'a Json<'a>> {
        self.0.at(path)
    }

    /// The text at a path of keys; empty if there is none.
    pub fn text(self, path: &[&str]) -> &'a str {
        self.at(path).and_then(Json::as_str).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workspace_with_a_claim_is_composed_into_the_claims_namespace() {
        let xr = Json::from(json!({
            "metadata": {"name": "alice-vision-x7k2p"},
            "spec": {"claimRef": {"namespace": "team-vision", "name": "alice-vision"}}
        }));
        let origin = Composite::new(&xr).origin().unwrap();
        assert_eq!(
            (origin.namespace.as_str(), origin.name.as_str()),
            ("team-vision", "alice-vision")
        );
    }

    #[test]
    fn a_namespaced_workspace_is_composed_into_its_own_namespace() {
        let xr = Json::from(json!({
            "metadata": {"name": "alice-vision", "namespace": "team-vision"},
            "spec": {"crossplane": {"compositionRef": {"name": "ec2"}}}
        }));
        let origin = Composite::new(&xr).origin().unwrap();
        assert_eq!(
            (origin.namespace.as_str(), origin.name.as_str()),
            ("team-vision", "alice-vision")
        );
    }
}
