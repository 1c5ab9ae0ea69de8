//! Decides who owns a workspace.

use api::policy::{OwnerBinding, WorkspacePolicy};
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::composite::{Composite, Origin};
use function_runtime::json::Json;
use function_runtime::outcome::{Hold, Problem, Refusal, Unresolved};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::validation::Violation;
use thiserror::Error;

use crate::claim;

const REQUIREMENT: &str = "namespace";
const PATH: &str = "spec.parameters.owner";

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

/// The owner of a workspace; empty if nothing names a valid one. The owner of the last call comes
/// first, then the claim's, then the one in the label of the Namespace.
pub fn of(
    composite: Composite<'_>,
    previous: &GpuDevWorkspaceStatus,
    policy: Option<&WorkspacePolicy>,
    request: &Request,
) -> String {
    let recorded = previous.owner.as_deref();
    let named = Some(claim::named_owner(composite)).filter(|owner| !owner.is_empty());
    let binding = policy.and_then(|policy| policy.owner_binding.as_ref());
    let bound = || Some(in_label(binding?, namespace(request)?));
    let owner = recorded.or(named).or_else(bound);
    let owner = owner.filter(|owner| claim::is_owner(owner));
    owner.unwrap_or_default().to_owned()
}

/// Refuses a workspace without an owner, with another owner than before, or with another owner than its
/// Namespace has. `owner` is the one that [`of`] returned.
pub fn check(
    policy: &WorkspacePolicy,
    composite: Composite<'_>,
    owner: &str,
    origin: &Origin,
    request: &Request,
) -> Result<(), Unresolved> {
    let named = claim::named_owner(composite);
    let refused = |problem| Err(Refusal::parameters(Violation::new(PATH, problem)).into());
    if !named.is_empty() && named != owner {
        return refused(format!(
            "must be {owner}, the owner of this workspace so far; delete the claim and create \
             another"
        ));
    }
    let Some(binding) = &policy.owner_binding else {
        return if owner.is_empty() {
            let problem = "is required: write the name of the person who owns the workspace, since \
                           the policy has no ownerBinding";
            refused(problem.to_owned())
        } else {
            Ok(())
        };
    };
    let Some(found) = namespace(request) else {
        let unresolved = NamespaceUnresolved {
            name: origin.namespace.clone(),
        };
        return Err(Hold::from(unresolved).into());
    };
    let bound = in_label(binding, found);
    if bound == owner && !bound.is_empty() {
        return Ok(());
    }
    let label = &binding.namespace_label;
    refused(misfit(&origin.namespace, label, bound, named, owner))
}

/// Why a workspace of `owner` cannot be in a namespace of `bound`. The claim names `named`.
fn misfit(namespace: &str, label: &str, bound: &str, named: &str, owner: &str) -> String {
    if bound.is_empty() {
        return format!(
            "nobody may have workspaces in namespace {namespace}: it has no label {label}; ask the \
             platform team for it"
        );
    }
    if !claim::is_owner(bound) {
        return format!(
            "namespace {namespace} has no valid owner: its label {label} is {bound}, and an owner has \
             only lower-case letters, digits, ., _ and -; ask the platform team to change it"
        );
    }
    if named.is_empty() {
        return format!(
            "this workspace belongs to {owner}, and namespace {namespace} to {bound} (its label \
             {label}): delete the claim and create another"
        );
    }
    format!("must be {bound}, the owner of namespace {namespace} (its label {label})")
}

fn namespace<'a>(request: &'a Request<'a>) -> Option<&'a Json<'a>> {
    match request.required(REQUIREMENT) {
        Required::Present(namespace) => Some(namespace),
        Required::Absent | Required::Unresolved => None,
    }
}

/// The value of the label; empty without the label.
fn in_label<'a>(binding: &OwnerBinding, namespace: &'a Json<'a>) -> &'a str {
    let labels = namespace.pointer("/metadata/labels");
    let value = labels.and_then(|labels| labels.get(&binding.namespace_label));
    value.and_then(Json::as_str).unwrap_or_default()
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

    fn is_pending(&self) -> bool {
        true
    }
}
