//! A workspace stays where it was made: what is there decides, before the claim does.

use api::workspace::{Placement, WorkspaceParameters};
use function_runtime::composite::Composite;
use function_runtime::connection;
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use function_runtime::validation::Violation;

use crate::claim;

/// Whether a composition resource name is that of a part of a placement.
type Owns = fn(&str) -> bool;

/// Where the workspace is, or is to be.
pub fn of(
    request: &Request,
    composite: Composite<'_>,
    of_ec2: Owns,
    of_cluster: Owns,
) -> Placement {
    let observed = |owns: Owns| request.observed.keys().any(|name| owns(name));
    if observed(of_cluster) || (!observed(of_ec2) && claim::is_in_cluster(composite)) {
        Placement::Cluster
    } else {
        Placement::Ec2
    }
}

/// Refuses a claim that says otherwise, or its resources would be dropped. The XRD
/// refuses that as well, but an XR may be older than its schema.
pub fn check(
    request: &Request,
    parameters: &WorkspaceParameters,
    placement: Placement,
    owns: Owns,
) -> Result<(), Refusal> {
    let name = match placement {
        Placement::Ec2 => "EC2",
        Placement::Cluster => "Cluster",
    };
    // A workspace's resources are those of its placements, and its connection Secret.
    let is_elsewhere = |name: &&String| !owns(name) && *name != connection::NAME;
    let elsewhere = request.observed.keys().find(is_elsewhere);
    let problem = match elsewhere {
        None if parameters.placement == placement => return Ok(()),
        None => format!("must stay {name}: delete the claim and create another"),
        Some(key) => format!("cannot be {name} while there is {key}: delete the claim"),
    };
    let violation = Violation::new("spec.parameters.placement", problem);
    Err(Refusal::parameters(violation))
}
