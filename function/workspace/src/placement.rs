//! The placement of a workspace. It never changes: observed resources decide before the claim does.

use api::workspace::{Placement, WorkspaceParameters};
use function_runtime::composite::Composite;
use function_runtime::connection;
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use function_runtime::validation::Violation;

use crate::{claim, memory};

/// Whether a composition resource name belongs to a placement.
type Owns = fn(&str) -> bool;

/// The placement of a workspace: that of its observed resources, or else that of its claim.
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

/// Whether a composed resource with this composition resource name belongs to a workspace in either
/// placement, whether it has machines or not: the connection Secret and the record.
pub fn is_everywhere(name: &str) -> bool {
    [connection::NAME, memory::NAME].contains(&name)
}

/// Refuses a claim with another placement: the function would drop the observed resources of the
/// workspace. The XRD refuses such a change too, but a composite may be older than its schema.
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
    let is_elsewhere = |name: &&String| !owns(name) && !is_everywhere(name);
    let elsewhere = request.observed.keys().find(is_elsewhere);
    let problem = match elsewhere {
        None if parameters.placement == placement => return Ok(()),
        None => format!("must stay {name}: delete the claim and create another"),
        Some(key) => format!("cannot be {name} while there is {key}: delete the claim"),
    };
    let violation = Violation::new("spec.parameters.placement", problem);
    Err(Refusal::parameters(violation))
}
