//! The proposed policy, and the policy that it replaces.

use serde_json::Value;

use crate::composition;
use crate::error::Error;
use crate::snapshot::Source;

const KIND: &str = "WorkspacePolicy";
/// The Composition of a proposal that names none.
const COMPOSITION: &str = "gpudevworkspaces";

/// A proposed policy for the workspaces of a Composition.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The name of the Composition.
    pub composition: String,
    /// The proposed policy.
    pub policy: Value,
    /// The policy in force; none if the cluster does not have the Composition.
    pub in_force: Option<Value>,
}

impl Proposal {
    /// Reads a proposal: a `WorkspacePolicy`, or a Composition with one. `composition` names the
    /// Composition of a bare policy.
    ///
    /// # Errors
    ///
    /// The text is neither, or the cluster cannot be read.
    pub fn read(
        text: &str,
        composition: Option<&str>,
        source: &mut dyn Source,
    ) -> Result<Self, Error> {
        let document: Value =
            serde_yaml::from_str(text).map_err(|error| Error::Proposal(error.to_string()))?;
        let own_name = document.pointer("/metadata/name").and_then(Value::as_str);
        let (policy, named) = match document.get("kind").and_then(Value::as_str) {
            Some(KIND) => (Some(document.clone()), None),
            Some("Composition") => (composition::input(&document, KIND).cloned(), own_name),
            _ => (None, None),
        };
        let policy = policy.ok_or_else(|| {
            let wanted =
                "write a WorkspacePolicy, or a Composition with one as the input of a step";
            Error::Proposal(wanted.to_owned())
        })?;
        let composition = composition.or(named).unwrap_or(COMPOSITION).to_owned();
        let compositions = source.list("apiextensions.crossplane.io/v1", "Composition")?;
        let there = compositions.iter().find(|one| {
            one.pointer("/metadata/name").and_then(Value::as_str) == Some(composition.as_str())
        });
        Ok(Self {
            in_force: there
                .and_then(|there| composition::input(there, KIND))
                .cloned(),
            composition,
            policy,
        })
    }
}

/// The name of a composite's Composition; none for a claim.
pub fn composition_of(composite: &Value) -> Option<&str> {
    let legacy = "/spec/compositionRef/name";
    let modern = "/spec/crossplane/compositionRef/name";
    let is_composite = composite.pointer("/spec/resourceRefs").is_some()
        || composite.pointer("/spec/claimRef").is_some();
    let name = match composite.pointer(modern) {
        Some(name) => Some(name),
        None => composite.pointer(legacy).filter(|_| is_composite),
    };
    name?.as_str()
}
