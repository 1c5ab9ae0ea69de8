//! What must hold of conditions.

use std::collections::BTreeSet;

use function_sdk_rust::proto::v1::{RunFunctionResponse, Status, Target};
use serde_json::Value;

use crate::fleeting;
use crate::oracle::{Outcome, broken};

const CONDITIONS: [&str; 9] = [
    "ConfigResolved",
    "ComputeReady",
    "AccessReady",
    "SoftwareReady",
    "HomeReady",
    "Interrupting",
    "StopScheduled",
    "PolicyEnforced",
    "WithinBudget",
];

/// What must hold of the conditions of every answer.
pub fn check(json: &Value, response: &RunFunctionResponse) -> Outcome {
    let mut types = BTreeSet::new();
    for condition in &response.conditions {
        let name = condition.r#type.as_str();
        let wrong = |what: &str| broken("conditions", format!("{name} {what}: {condition:?}"));
        if !CONDITIONS.contains(&name) || !types.insert(name) {
            return wrong("is unknown, or there twice");
        }
        let holds = condition.status == Status::ConditionTrue as i32;
        let is_false = condition.status == Status::ConditionFalse as i32;
        let may_be_unknown = match name {
            "ConfigResolved" => condition.reason.ends_with("Unresolved"),
            _ => name == "SoftwareReady",
        };
        if !holds && !is_false && !may_be_unknown {
            return wrong("is neither True nor False");
        }
        if !is_reason(&condition.reason) && !is_observed(json, &condition.reason) {
            return wrong("has no reason that Kubernetes takes");
        }
        if !holds && condition.message().trim().is_empty() {
            return wrong("does not say why");
        }
        if condition.target() != Target::CompositeAndClaim {
            return wrong("does not reach the claim");
        }
        // A deadline is a time, and stays.
        let may_be_timed = name == "StopScheduled" || condition.reason == "BudgetExceeded";
        if !may_be_timed && fleeting::is_in(condition.message()) && !fleeting::is_out_of_place(json)
        {
            return wrong("changes with every attempt");
        }
    }
    // Without a workspace there is no compute to tell of.
    let has_compute = types.contains("ComputeReady") || !is_workspace(json);
    if !types.contains("ConfigResolved") || !has_compute {
        return broken("conditions", format!("only {types:?} are there"));
    }
    Ok(())
}

fn is_workspace(request: &Value) -> bool {
    let composite = &request["observed"]["composite"]["resource"];
    let kind = composite["kind"].as_str().unwrap_or_default();
    let version = composite["apiVersion"].as_str().unwrap_or_default();
    ["GpuDevWorkspace", "GpuDevWorkspaceClaim"].contains(&kind)
        && version.starts_with("platform.acme.io/")
}

/// Whether an observed condition has the reason, which is passed on.
fn is_observed(request: &Value, reason: &str) -> bool {
    let resources = request.pointer("/observed/resources");
    let mut resources = resources.and_then(Value::as_object).into_iter().flatten();
    resources.any(|(_, resource)| {
        let conditions = resource.pointer("/resource/status/conditions");
        let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
        conditions.any(|condition| condition["reason"] == reason)
    })
}

/// As Kubernetes' API conventions ask.
pub fn is_reason(reason: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && reason.chars().all(inner)
        && reason.len() <= 1024
}
