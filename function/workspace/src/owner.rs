//! Whose claims a namespace may hold, where the policy ties the two together.

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

/// The claim's Namespace, where its label matters.
pub fn requirement(policy: &WorkspacePolicy, origin: &Origin) -> Option<Requirement> {
    policy.owner_binding.as_ref().map(|_| Requirement {
        name: REQUIREMENT.to_owned(),
        api_version: "v1",
        kind: "Namespace",
        selector: Selector::Named(origin.namespace.clone()),
    })
}

/// Refuses an owner that the claim's namespace does not belong to.
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

/// The claim's Namespace, which says whose claims it holds, is not there.
#[derive(Clone, Debug, Error)]
#[error("waiting for Crossplane to fetch Namespace {name}, whose label says who owns it")]
struct NamespaceUnresolved {
    /// The Namespace.
    name: String,
}

impl Problem for NamespaceUnresolved {
    fn reason(&self) -> &'static str {
        "NamespaceUnresolved"
    }
}
