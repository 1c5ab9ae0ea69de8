//! A workspace stays where it was made: what is there decides, before the claim does.

use api::workspace::{Placement, WorkspaceParameters};

use crate::composite::Composite;
use crate::keys;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::schema::Violation;

/// Where the workspace is, or is to be.
pub fn of(request: &Request, composite: Composite<'_>) -> Placement {
    let observed = |is_there: fn(&str) -> bool| request.observed.keys().any(|key| is_there(key));
    let is_in_cluster =
        observed(keys::is_in_cluster) || (!observed(keys::is_on_ec2) && composite.is_in_cluster());
    if is_in_cluster {
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
) -> Result<(), Refusal> {
    let (name, is_elsewhere) = match placement {
        Placement::Ec2 => ("EC2", keys::is_in_cluster as fn(&str) -> bool),
        Placement::Cluster => ("Cluster", keys::is_on_ec2 as fn(&str) -> bool),
    };
    let elsewhere = request.observed.keys().find(|key| is_elsewhere(key));
    let problem = match elsewhere {
        None if parameters.placement == placement => return Ok(()),
        None => format!("must stay {name}: delete the claim and create another"),
        Some(key) => format!("cannot be {name} while there is {key}: delete the claim"),
    };
    let violation = Violation::new("spec.parameters.placement", problem);
    Err(Refusal::Parameters(violation.into()))
}
