//! The observed XR, in the shape that claims give it and in the modern one.

use std::fmt;

use serde_json::Value;

/// An observed XR.
#[derive(Clone, Copy, Debug)]
pub struct Composite<'a>(&'a Value);

/// Where a workspace lives and what people call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The namespace that everything is composed into.
    pub namespace: String,
    /// The claim's name, or that of an XR without a claim.
    pub name: String,
}

/// What tells an XR from every other one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompositeId {
    /// Its name.
    pub name: String,
    /// Its UID; empty when it is rendered without a cluster.
    pub uid: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl<'a> Composite<'a> {
    /// The XR of a request.
    pub fn new(composite: &'a Value) -> Self {
        Self(composite)
    }

    /// The XR's own name, for logs.
    pub fn name(self) -> &'a str {
        self.text(&["metadata", "name"])
    }

    /// What tells this XR from every other one.
    pub fn id(self) -> CompositeId {
        CompositeId {
            name: self.name().to_owned(),
            uid: self.text(&["metadata", "uid"]).to_owned(),
        }
    }

    /// The XR's own namespace; none of a legacy XR, which is cluster-scoped.
    pub fn namespace(self) -> Option<&'a str> {
        let namespace = self.text(&["metadata", "namespace"]);
        (!namespace.is_empty()).then_some(namespace)
    }

    /// Where it lives; none of a legacy XR without a claim.
    ///
    /// A legacy XR is cluster-scoped and knows its claim by `spec.claimRef`; a
    /// modern one is namespaced itself and keeps Crossplane's fields under
    /// `spec.crossplane`.
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

    /// Its kind: workspaces, flavors and users have Compositions of their own.
    pub fn kind(self) -> &'a str {
        self.text(&["kind"])
    }

    /// The XR's annotation, which Crossplane copies from its claim.
    pub fn annotation(self, key: &str) -> Option<&'a str> {
        self.at(&["metadata", "annotations", key])?
            .as_str()
            .filter(|value| !value.is_empty())
    }

    /// The reason of one of the XR's conditions, as the last call left it.
    pub fn condition_reason(self, type_: &str) -> Option<&'a str> {
        let conditions = self.at(&["status", "conditions"])?.as_array()?;
        let condition = conditions
            .iter()
            .find(|c| c.get("type").and_then(Value::as_str) == Some(type_))?;
        condition.get("reason")?.as_str()
    }

    /// Walks by keys. (`Value::pointer` copies every one of them first.)
    pub fn at(self, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.0, |value, key| value.get(key))
    }

    /// A text; empty where there is none.
    pub fn text(self, path: &[&str]) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claims_workspace_is_composed_into_the_claims_namespace() {
        let xr = json!({
            "metadata": {"name": "alice-vision-x7k2p"},
            "spec": {"claimRef": {"namespace": "team-vision", "name": "alice-vision"}}
        });
        let origin = Composite::new(&xr).origin().unwrap();
        assert_eq!(
            (origin.namespace.as_str(), origin.name.as_str()),
            ("team-vision", "alice-vision")
        );
    }

    #[test]
    fn a_namespaced_workspace_is_composed_into_its_own_namespace() {
        let xr = json!({
            "metadata": {"name": "alice-vision", "namespace": "team-vision"},
            "spec": {"crossplane": {"compositionRef": {"name": "ec2"}}}
        });
        let origin = Composite::new(&xr).origin().unwrap();
        assert_eq!(
            (origin.namespace.as_str(), origin.name.as_str()),
            ("team-vision", "alice-vision")
        );
    }
}
