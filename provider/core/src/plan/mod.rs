//! The planner: it decides which actions bring a pool from its observed to its desired state.

mod action;
mod census;
mod deletion;
mod home;
mod keys;
mod launches;
mod leases;
mod reach;
mod size;
mod surplus;

use jiff::Timestamp;

pub use action::{Action, Choice, Disruption, HomeAction, Phase, Plan, Wait};
pub use home::offerings;

use crate::{Desired, Observed};

/// Decides which actions bring the pool to its desired state. Equal arguments give equal plans.
/// `observed` must be settled (see [`Observed::settle`]).
pub fn plan(desired: &Desired, observed: &Observed, now: Timestamp) -> Plan {
    let planned = if desired.deleted {
        deletion::plan(desired, observed, now)
    } else {
        size::plan(desired, observed, now)
    };
    planned.in_order()
}
