//! A namespace of other people with the name of the user's namespace.
//!
//! Crossplane would change the labels of such a namespace, and Kubernetes would delete the namespace
//! with the `DevUser`.

use function_runtime::object::ObservedObject;
use function_runtime::outcome::{Problem, Refusal};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use thiserror::Error;

use crate::objects::User;
use crate::resource_names;

const REQUIREMENT: &str = "existing-namespace";
/// Crossplane's label on a composed resource: the name of the composite.
const COMPOSITE_LABEL: &str = "crossplane.io/composite";

/// Asks Crossplane for the namespace before it is composed for the first time.
///
/// While Crossplane has not answered, nothing is refused: Crossplane calls again until the
/// requirements no longer change, and uses the last answer only.
pub fn requirement(request: &Request, namespace: &str) -> Option<Requirement> {
    let is_composed = request.observed.contains_key(resource_names::NAMESPACE);
    (!is_composed).then(|| Requirement {
        name: REQUIREMENT.to_owned(),
        api_version: "v1",
        kind: "Namespace",
        selector: Selector::Named(namespace.to_owned()),
    })
}

/// Refuses a namespace that another person made. A restored `DevUser` gets its own one back.
pub fn check(request: &Request, user: User<'_>) -> Result<(), Refusal> {
    let is_composed = request.observed.contains_key(resource_names::NAMESPACE);
    let Required::Present(found) = request.required(REQUIREMENT) else {
        return Ok(());
    };
    let made_by = ObservedObject::new(found).label(COMPOSITE_LABEL);
    if is_composed || made_by == Some(user.name) {
        return Ok(());
    }
    Err(Refusal::from(NamespaceTaken {
        namespace: user.namespace.to_owned(),
        user: user.name.to_owned(),
    }))
}

/// A namespace with the name exists, and is not the user's.
#[derive(Clone, Debug, Error)]
#[error(
    "metadata.name: Namespace {namespace} exists, and Crossplane did not make it for this DevUser; \
     give the DevUser another name, delete the Namespace, or hand it over: kubectl label namespace \
     {namespace} {COMPOSITE_LABEL}={user}"
)]
struct NamespaceTaken {
    namespace: String,
    user: String,
}

impl Problem for NamespaceTaken {
    fn reason(&self) -> &'static str {
        "NameTaken"
    }

    fn field(&self) -> Option<&'static str> {
        Some("metadata.name")
    }
}
