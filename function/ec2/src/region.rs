//! The AWS region of a workspace. It is chosen once, because neither an instance nor a volume can
//! move to another region.

use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};

/// The region of a workspace if neither its claim nor the policy names one.
const DEFAULT: &str = "us-east-1";
const PATH: &str = "spec.parameters.region";

/// The region of a workspace: the one where it is, or else that of the claim, or else that of the
/// policy.
pub fn of<'a>(
    parameters: Option<&'a WorkspaceParameters>,
    policy: Option<&'a WorkspacePolicy>,
    is_in: Option<&'a str>,
) -> &'a str {
    let claimed = || parameters?.region.as_deref();
    is_in
        .or_else(claimed)
        .unwrap_or_else(|| policy.map_or(DEFAULT, default))
}

/// The default of the policy. Without one, it is a region that the policy allows.
fn default(policy: &WorkspacePolicy) -> &str {
    let allowed = policy.allowed_regions.as_deref().unwrap_or_default();
    let is_allowed = allowed.is_empty() || allowed.iter().any(|region| region == DEFAULT);
    let first = allowed.first().filter(|_| !is_allowed);
    let named = policy.defaults.region.as_ref();
    named.or(first).map_or(DEFAULT, String::as_str)
}

/// Refuses a claim that names another region than that of the workspace, and a region that the
/// policy does not allow.
pub fn check(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    region: &str,
) -> Result<(), Violations> {
    if parameters.region.as_deref().is_some_and(|r| r != region) {
        let problem = format!(
            "must be {region}, where the workspace is: a workspace cannot move to another region; \
             delete the claim and create another"
        );
        return Err(Violation::new(PATH, problem).into());
    }
    match &policy.allowed_regions {
        Some(allowed) if !allowed.iter().any(|known| known == region) => {
            Err(Violation::not_allowed(PATH, region, allowed).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn region(claim: &Value, policy: &Value, is_in: Option<&str>) -> String {
        let mut input = json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v3",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"]
        });
        for (field, value) in policy.as_object().unwrap() {
            input[field] = value.clone();
        }
        let policy = function_workspace::policy::read(Some(&input)).unwrap();
        let mut parameters = json!({"owner": "alice"});
        for (field, value) in claim.as_object().unwrap() {
            parameters[field] = value.clone();
        }
        let parameters = serde_json::from_value(parameters).unwrap();
        of(Some(&parameters), Some(&policy), is_in).to_owned()
    }

    #[test]
    fn a_claim_with_an_owner_only_runs_where_the_policy_allows_it() {
        let owner_only = json!({});
        for (policy, expected) in [
            (json!({}), "us-east-1"),
            (
                json!({"allowedRegions": ["eu-west-1", "us-east-1"]}),
                "us-east-1",
            ),
            (json!({"allowedRegions": ["eu-central-1"]}), "eu-central-1"),
            (json!({"defaults": {"region": "eu-west-1"}}), "eu-west-1"),
        ] {
            assert_eq!(region(&owner_only, &policy, None), expected, "{policy}");
        }
    }

    #[test]
    fn a_workspace_stays_in_its_region_whatever_the_policy_becomes() {
        let policy = json!({"defaults": {"region": "eu-west-1"}});
        assert_eq!(region(&json!({}), &policy, Some("us-east-1")), "us-east-1");
        let claim = json!({"region": "us-west-2"});
        assert_eq!(region(&claim, &policy, None), "us-west-2");
        assert_eq!(region(&claim, &policy, Some("us-east-1")), "us-east-1");
    }
}
