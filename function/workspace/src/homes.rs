//! Checks the size of homes.

use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};

/// Refuses a home that is larger than the policy's ceiling.
pub fn check(parameters: &WorkspaceParameters, policy: &WorkspacePolicy) -> Result<(), Violations> {
    let ceiling = policy.ceilings.as_ref().and_then(|c| c.home_size_gib);
    match (&parameters.home, ceiling) {
        (Some(home), Some(ceiling)) if home.size_gib > ceiling => {
            let problem = format!("must be at most {ceiling}, the policy's ceiling");
            Err(Violation::new("spec.parameters.home.sizeGiB", problem).into())
        }
        _ => Ok(()),
    }
}
