//! The surplus instances, in the order in which they end.

use super::Choice;
use super::census::{Census, Standing};
use crate::{Desired, Instance, Market, Observed};

/// Up to `number` instances that are in reach, have no lease and are not disrupted. Those of the fullest zone
/// come first, then those of the fullest offering, then the least preferred ones, then the newest.
/// A chosen instance does not count for the next choice.
pub(super) fn surplus<'a>(
    desired: &Desired,
    observed: &Observed,
    census: &Census<'a>,
    number: usize,
) -> Vec<(&'a Instance, Choice)> {
    let idle = census.live.iter();
    let idle = idle.filter(|(_, s)| matches!(s, Standing::Good | Standing::Cordoned));
    let reachable = idle.filter(|(i, _)| !observed.is_out_of_reach(&i.id));
    let mut left: Vec<&Instance> = reachable.map(|(i, _)| *i).collect();
    let mut chosen = Vec::new();
    while chosen.len() < number {
        let last = left
            .iter()
            .copied()
            .max_by_key(|i| (weight(desired, &left, i), i.launch, &i.id));
        let Some(victim) = last else {
            break;
        };
        let why = choice(desired, &left, victim);
        left.retain(|i| i.id != victim.id);
        chosen.push((victim, why));
    }
    chosen
}

/// How full an instance's zone and offering are, and how little the offering is preferred.
fn weight(
    desired: &Desired,
    left: &[&Instance],
    instance: &Instance,
) -> (usize, usize, (bool, usize)) {
    let zone = crowd(left, |o| o.offering.zone == instance.offering.zone);
    let offering = crowd(left, |o| o.offering == instance.offering);
    (
        if desired.spread.zones { zone } else { 0 },
        if desired.spread.per_offering.is_some() {
            offering
        } else {
            0
        },
        unwanted(desired, instance),
    )
}

fn crowd(left: &[&Instance], is_it: impl Fn(&Instance) -> bool) -> usize {
    left.iter().filter(|i| is_it(i)).count()
}

/// How little an instance's offering is preferred: a higher value is less preferred.
fn unwanted(desired: &Desired, instance: &Instance) -> (bool, usize) {
    let offering = &instance.offering;
    let types = desired.offerings.iter().map(|o| &o.instance_type);
    let mut named: Vec<&String> = Vec::new();
    for one in types {
        if !named.contains(&one) {
            named.push(one);
        }
    }
    let place = named.iter().position(|t| **t == offering.instance_type);
    (
        offering.market == Market::OnDemand,
        place.unwrap_or(usize::MAX),
    )
}

/// The first rule by which the victim differs from one of the other instances.
fn choice(desired: &Desired, left: &[&Instance], victim: &Instance) -> Choice {
    let (zone, offering, wanted) = weight(desired, left, victim);
    let weights = left.iter().map(|i| weight(desired, left, i));
    let weights: Vec<_> = weights.collect();
    if weights.iter().any(|w| w.0 < zone) {
        Choice::CrowdedZone
    } else if weights.iter().any(|w| w.1 < offering) {
        Choice::CrowdedOffering
    } else if weights.iter().any(|w| w.2 < wanted) {
        Choice::LeastWanted
    } else {
        Choice::Newest
    }
}
