//! Checks the size of homes.

use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};

/// EC2's largest volume in GiB ("Amazon EBS volume types", gp3).
const LARGEST: i32 = 16384;

/// Refuses a home without a size, one that no volume can have, and one that is larger than the
/// policy's ceiling.
pub fn check(parameters: &WorkspaceParameters, policy: &WorkspacePolicy) -> Result<(), Violations> {
    let Some(home) = &parameters.home else {
        return Ok(());
    };
    let refused = |problem: String| {
        let path = format!("spec.parameters.home.{}", home.field());
        Err(Violation::new(path, problem).into())
    };
    let ceiling = policy.ceilings.as_ref().and_then(|c| c.home_size_gib);
    match (home.gib(), ceiling) {
        (..1, _) => refused("is required, for example 100Gi".to_owned()),
        (size, Some(ceiling)) if size > ceiling => refused(format!(
            "must be at most {ceiling}{}, the policy's ceiling",
            unit(home.field())
        )),
        (size, None) if size > LARGEST => refused("must be at most 16Ti".to_owned()),
        _ => Ok(()),
    }
}

fn unit(field: &str) -> &'static str {
    if field == "size" { "Gi" } else { "" }
}
