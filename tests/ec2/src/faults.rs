//! What EC2 refuses, and with which words.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use provider_aws::Ec2Error;
use provider_core::{ErrorClass, Market, Offering};

use crate::SplitMix64;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EC2 answers this code and does nothing.
    Refused(&'static str),
    /// EC2 does it and the answer is lost.
    LostReply,
}

/// The faults in force.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Offerings without capacity.
    pub no_capacity: BTreeSet<Offering>,
    /// Markets whose limit is reached.
    pub no_quota: BTreeSet<Market>,
    /// No offering has more than so many at a time.
    pub most_each: Option<u32>,
    /// By API operation, until it is taken out.
    pub always: BTreeMap<&'static str, Fault>,
    /// By API operation, each for one call.
    pub once: VecDeque<(&'static str, Fault)>,
    /// Nothing answers.
    pub is_unreachable: bool,
    /// Calls of a hundred that fail in one way or another.
    pub percent: u64,
    /// Listed instances of a hundred that one answer leaves out.
    pub flicker: u64,
}

const AT_RANDOM: [Fault; 7] = [
    Fault::LostReply,
    Fault::LostReply,
    Fault::Refused("InternalError"),
    Fault::Refused("Dispatch"),
    Fault::Refused("RequestLimitExceeded"),
    Fault::Refused("UnauthorizedOperation"),
    Fault::Refused("InvalidParameterValue"),
];

impl Faults {
    /// What happens to the next call of `operation`.
    pub fn of(&mut self, operation: &str, dice: &mut SplitMix64) -> Option<Fault> {
        if self.is_unreachable {
            return Some(Fault::Refused("Dispatch"));
        }
        if let Some(fault) = self.always.get(operation) {
            return Some(*fault);
        }
        if let Some(at) = self.once.iter().position(|(of, _)| *of == operation) {
            return self.once.remove(at).map(|(_, fault)| fault);
        }
        (self.percent > 0 && dice.percent(self.percent)).then(|| *dice.pick(&AT_RANDOM))
    }

    /// Everything works.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// How many of an offering EC2 sells at the moment, and why no more.
    pub fn grant(&self, offering: &Offering, missing: u32) -> (u32, Option<&'static str>) {
        if self.no_quota.contains(&offering.market) {
            let code = match offering.market {
                Market::Spot => "MaxSpotInstanceCountExceeded",
                Market::OnDemand => "VcpuLimitExceeded",
            };
            (0, Some(code))
        } else if self.no_capacity.contains(offering) {
            (0, Some("InsufficientInstanceCapacity"))
        } else if missing > self.most_each.unwrap_or(u32::MAX) {
            let granted = self.most_each.unwrap_or_default();
            (granted, Some("InsufficientInstanceCapacity"))
        } else {
            (missing, None)
        }
    }
}

/// An error of an operation, as provider-aws classifies it.
pub fn error(operation: &'static str, code: &str) -> Ec2Error {
    Ec2Error {
        operation,
        code: code.to_owned(),
        message: String::new(),
        class: ErrorClass::of(code),
    }
}
