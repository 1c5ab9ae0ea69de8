//! Faults of EC2: refused calls, lost replies, and offerings that EC2 does not have.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use provider_aws::Ec2Error;
use provider_core::{ErrorClass, Market, Offering, Refusal};

use crate::SplitMix64;

/// A fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EC2 answers with this error code and does nothing.
    Refused(&'static str),
    /// EC2 carries out the call, but the reply is lost.
    LostReply,
    /// EC2 does not answer, until the caller gives up.
    Hangs,
}

/// A zone that is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneDown {
    /// The zone.
    pub zone: &'static str,
    /// Whether EC2 also fails each fleet that names several zones, or this one.
    pub fails_fleets: bool,
}

/// The faults in force.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The state reason and its message with which EC2 ends every instance that it has just
    /// launched.
    pub dies_at_birth: Option<(&'static str, &'static str)>,
    /// Whether EC2 takes volumes back that it has just accepted.
    pub takes_volumes_back: bool,
    /// The error code that EC2 gives for every offering, inside a fleet's answer that succeeded.
    pub inside: Option<&'static str>,
    /// The error code that EC2 gives for an offering, inside a fleet's answer that succeeded.
    pub refuses: BTreeMap<Offering, &'static str>,
    /// Whether the account lacks EC2's role for spot instances, and may not create it.
    pub lacks_spot_role: bool,
    /// Offerings without capacity.
    pub no_capacity: BTreeSet<Offering>,
    /// Offerings that their zone does not have on their market, although
    /// `DescribeInstanceTypeOfferings` lists their type there.
    pub not_in_zone: BTreeSet<Offering>,
    /// Markets in which the account has reached its quota.
    pub no_quota: BTreeSet<Market>,
    /// The most instances of an offering that EC2 has for one launch.
    pub most_each: Option<u32>,
    /// Faults of all calls of an operation, until the test removes them.
    pub always: BTreeMap<&'static str, Fault>,
    /// Faults of the next calls of an operation, each for one call.
    pub once: VecDeque<(&'static str, Fault)>,
    /// The zone that is down. EC2 describes instances only for calls that name instances of other
    /// zones, and has no capacity there.
    pub zone_down: Option<ZoneDown>,
    /// Whether EC2 does not answer at all.
    pub is_unreachable: bool,
    /// The percentage of calls that get a random fault.
    pub percent: u64,
    /// The percentage of instances and volumes that an answer leaves out at random.
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
    /// The fault of the next call of `operation`, if there is one.
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

    /// Ends all faults.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Fails a describe that names no instance, while a zone is down.
    pub fn check_zones(&self) -> Result<(), Ec2Error> {
        self.zone_down
            .map_or(Ok(()), |_| Err(down("DescribeInstances")))
    }

    /// Fails a describe that names instances of these zones, if one of them is down.
    pub fn check_named<'a>(
        &self,
        mut zones: impl Iterator<Item = &'a str>,
    ) -> Result<(), Ec2Error> {
        if zones.any(|zone| self.is_down(zone)) {
            return Err(down("DescribeInstances"));
        }
        Ok(())
    }

    /// Fails a fleet of these zones while a zone is down, if EC2 does so.
    pub fn check_fleet(&self, zones: &BTreeSet<&str>) -> Result<(), Ec2Error> {
        let is_concerned = zones.len() > 1 || zones.iter().any(|zone| self.is_down(zone));
        if self.zone_down.is_some_and(|down| down.fails_fleets) && is_concerned {
            return Err(down("CreateFleet"));
        }
        Ok(())
    }

    fn is_down(&self, zone: &str) -> bool {
        self.zone_down.is_some_and(|down| down.zone == zone)
    }

    /// How many of the missing instances EC2 has of an offering, and the error code if it has
    /// fewer.
    pub fn grant(&self, offering: &Offering, missing: u32) -> (u32, Option<&'static str>) {
        if let Some(code) = self.inside {
            (0, Some(code))
        } else if let Some(code) = self.refuses.get(offering) {
            (0, Some(code))
        } else if self.no_quota.contains(&offering.market) {
            let code = match offering.market {
                Market::Spot => "MaxSpotInstanceCountExceeded",
                Market::OnDemand => "VcpuLimitExceeded",
            };
            (0, Some(code))
        } else if self.lacks_spot_role && offering.market == Market::Spot {
            (0, Some("AuthFailure.ServiceLinkedRoleCreationNotPermitted"))
        } else if self.not_in_zone.contains(offering) {
            (0, Some(NOT_IN_ZONE))
        } else if self.no_capacity.contains(offering) || self.is_down(&offering.zone) {
            (0, Some("InsufficientInstanceCapacity"))
        } else if missing > self.most_each.unwrap_or(u32::MAX) {
            let granted = self.most_each.unwrap_or_default();
            (granted, Some("InsufficientInstanceCapacity"))
        } else {
            (missing, None)
        }
    }
}

/// The error of a describe while a zone is down.
fn down(operation: &'static str) -> Ec2Error {
    error(operation, "InternalError")
}

/// EC2's code for a type that a zone does not have on a market.
const NOT_IN_ZONE: &str = "InvalidFleetConfiguration";

/// EC2's refusal of an offering. The message is AWS's, where it decides about the class.
pub fn refusal(offering: &Offering, code: &str) -> Refusal {
    let message = match code {
        // aws/karpenter-provider-aws#1219 shows `(null)` in place of the type.
        NOT_IN_ZONE => format!(
            "Your requested instance type ((null)) is not supported in your requested Availability \
             Zone ({}).",
            offering.zone
        ),
        // kubernetes-sigs/karpenter#2275, without the list of other zones, which provider-aws cuts.
        "InsufficientInstanceCapacity" => format!(
            "We currently do not have sufficient {} capacity in the Availability Zone you requested \
             ({}).",
            offering.instance_type, offering.zone
        ),
        _ => String::new(),
    };
    Refusal::of(code, &message)
}

/// An error of an operation, with the class that the provider gives to the code.
pub fn error(operation: &'static str, code: &str) -> Ec2Error {
    Ec2Error {
        operation,
        code: code.to_owned(),
        message: String::new(),
        class: ErrorClass::of(code),
    }
}
