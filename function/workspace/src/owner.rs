//! Checks that a claim's namespace belongs to its owner, if the policy binds owners to namespaces.

use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::composite::Origin;
use function_runtime::outcome::{Hold, Problem, Refusal, Unresolved};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::validation::Violation;
use serde_json::Value;
use thiserror::Error;

const REQUIREMENT: &str = "namespace";

/// The requirement for the claim's Namespace; none if the policy does not bind owners to
/// namespaces.
pub fn requirement(policy: &WorkspacePolicy, origin: &Origin) -> Option<Requirement> {
    policy.owner_binding.as_ref().map(|_| Requirement {
        name: REQUIREMENT.to_owned(),
        api_version: "v1",
        kind: "Namespace",
        selector: Selector::Named(origin.namespace.clone()),
    })
}

/// Refuses a claim whose owner differs from the owner in the label of its Namespace.
pub fn check(
    policy: &WorkspacePolicy,
    parameters: &WorkspaceParameters,
    origin: &Origin,
    request: &Request,
) -> Result<(), Unresolved> {
    let Some(binding) = &policy.owner_binding else {
        return Ok(());
    };
    let namespace = &origin.namespace;
    let Required::Present(object) = request.required(REQUIREMENT) else {
        let unresolved = NamespaceUnresolved {
            name: namespace.clone(),
        };
        return Err(Hold::from(unresolved).into());
    };
    let label = &binding.namespace_label;
    let bound = object
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(label))
        .and_then(Value::as_str)
        .unwrap_or_default();
    if bound == parameters.owner {
        return Ok(());
    }
    let problem = if bound.is_empty() {
        format!(
            "nobody may have workspaces in namespace {namespace}: it has no label {label}; ask \
             the platform team for it"
        )
    } else {
        format!("must be {bound}, the owner of namespace {namespace} (its label {label})")
    };
    let violation = Violation::new("spec.parameters.owner", problem);
    Err(Refusal::parameters(violation).into())
}

/// Crossplane has not fetched the claim's Namespace, whose label names the owner.
#[derive(Clone, Debug, Error)]
#[error("waiting for Crossplane to fetch Namespace {name}, whose label says who owns it")]
struct NamespaceUnresolved {
    /// The name of the Namespace.
    name: String,
}

impl Problem for NamespaceUnresolved {
    fn reason(&self) -> &'static str {
        "NamespaceUnresolved"
    }
}
