//! What EC2 refuses, and with which words.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use provider_aws::Ec2Error;
use provider_core::{ErrorClass, Market, Offering};

use super::random::SplitMix64;

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

    /// Whether EC2 sells the offering at the moment.
    pub fn refuse(&self, offering: &Offering) -> Option<&'static str> {
        if self.no_quota.contains(&offering.market) {
            Some(match offering.market {
                Market::Spot => "MaxSpotInstanceCountExceeded",
                Market::OnDemand => "VcpuLimitExceeded",
            })
        } else if self.no_capacity.contains(offering) {
            Some("InsufficientInstanceCapacity")
        } else {
            None
        }
    }
}

/// An error as provider-aws classifies it.
pub fn error(operation: &'static str, code: &str) -> Ec2Error {
    let class = match code {
        "InsufficientInstanceCapacity" => ErrorClass::Capacity,
        "MaxSpotInstanceCountExceeded" | "VcpuLimitExceeded" => ErrorClass::Quota,
        "RequestLimitExceeded" => ErrorClass::Throttled,
        "UnauthorizedOperation" => ErrorClass::Denied,
        "InvalidParameterValue"
        | "InvalidAMIID.NotFound"
        | "InvalidGroup.NotFound"
        | "InvalidSubnetID.NotFound"
        | "MissingParameter" => ErrorClass::Configuration,
        "Dispatch"
        | "Timeout"
        | "InternalError"
        | "IdempotentParameterMismatch"
        | "InvalidGroup.Duplicate"
        | "InvalidInstanceID.NotFound"
        | "InvalidPermission.NotFound"
        | "InvalidSecurityGroupRuleId.NotFound"
        | "DependencyViolation" => ErrorClass::Transient,
        unknown => panic!("{unknown} is in no class here"),
    };
    Ec2Error {
        operation,
        code: code.to_owned(),
        message: String::new(),
        class,
    }
}
