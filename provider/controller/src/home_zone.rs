//! Checks the home's zone against the offerings of a spec.

use api::pool::SpotPoolParameters;
use provider_core::ObservedHome;

use crate::validate::{Invalid, Valid};

/// Checks that the spec allows a launch in the home's zone. A home that may move is not bound to
/// its zone.
pub fn check(spec: &SpotPoolParameters, valid: &Valid, home: &ObservedHome) -> Result<(), Invalid> {
    let (Some(wanted), Some(record)) = (&valid.desired.home, &home.record) else {
        return Ok(());
    };
    let zone = &record.zone;
    if wanted.moves || valid.desired.offerings.iter().any(|o| o.zone == *zone) {
        return Ok(());
    }
    let volume = record.volume_id.as_deref().unwrap_or_default();
    let place = format!("{zone}, where the home volume {volume} is");
    let (field, problem) = if valid.has_subnet(zone) {
        let problem = format!("none of the types is sold in {place}: name one that is");
        ("instanceTypes", problem)
    } else if spec.subnet_ids.is_some() {
        ("subnetIds", format!("none of them is in {place}: add one"))
    } else if spec.zones.is_some() {
        ("zones", format!("it lacks {place}: add it"))
    } else {
        let problem =
            format!("the default VPC has no subnet in {place}: make one, or name subnets");
        ("subnetIds", problem)
    };
    Err(Invalid {
        field: field.to_owned(),
        problem,
    })
}
