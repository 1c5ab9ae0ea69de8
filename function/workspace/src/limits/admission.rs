//! Whether the API server keeps claims within the current policy.
//!
//! A claim can pin an older revision of its Composition, and Crossplane does not check that. Only an
//! admission policy can refuse it. The platform's limits name the policy's binding.

use api::condition::POLICY_ENFORCED;
use api::limits::WorkspaceLimits;
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::response::Condition;

const REQUIREMENT: &str = "admission";

/// The requirement for the binding; none if the limits name none.
pub fn requirement(limits: &WorkspaceLimits) -> Option<Requirement> {
    limits.admission_binding.as_ref().map(|name| Requirement {
        name: REQUIREMENT.to_owned(),
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicyBinding",
        selector: Selector::Named(name.clone()),
    })
}

/// `PolicyEnforced`; none if the limits name no binding, or before Crossplane has fetched it.
pub fn condition(limits: &WorkspaceLimits, request: &Request) -> Option<Condition> {
    let name = limits.admission_binding.as_ref()?;
    match request.required(REQUIREMENT) {
        Required::Unresolved => None,
        Required::Present(_) => Some(Condition::is_true(POLICY_ENFORCED, "Bound")),
        Required::Absent => Some(Condition::is_false(
            POLICY_ENFORCED,
            "BindingMissing",
            format!(
                "ValidatingAdmissionPolicyBinding {name} does not exist, so a claim can leave the \
                 current policy: apply examples/platform/admission.yaml"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use function_runtime::json::Json;
    use serde_json::{Value, json};

    fn limits(name: Option<&str>) -> WorkspaceLimits {
        WorkspaceLimits {
            admission_binding: name.map(str::to_owned),
            ..WorkspaceLimits::default()
        }
    }

    fn found(binding: Option<Value>) -> Request<'static> {
        Request {
            required: [(
                REQUIREMENT.to_owned(),
                binding.into_iter().map(Json::from).collect(),
            )]
            .into(),
            ..Request::default()
        }
    }

    #[test]
    fn a_missing_binding_is_named_with_the_file_to_apply() {
        let limits = limits(Some("gpu-workspaces"));
        let missing = condition(&limits, &found(None)).unwrap();
        assert!(!missing.holds());
        assert_eq!(
            missing.message,
            "ValidatingAdmissionPolicyBinding gpu-workspaces does not exist, so a claim can leave \
             the current policy: apply examples/platform/admission.yaml"
        );
        let bound = condition(&limits, &found(Some(json!({})))).unwrap();
        assert!(bound.holds());
        assert_eq!(condition(&limits, &Request::default()), None);
    }

    #[test]
    fn limits_without_a_binding_say_nothing_of_admission() {
        assert_eq!(requirement(&limits(None)), None);
        assert_eq!(condition(&limits(None), &found(None)), None);
    }
}
