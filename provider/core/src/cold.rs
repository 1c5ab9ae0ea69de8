//! Memory of what EC2 refused, so that one cold offering blocks no other.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{ErrorClass, Offering, Refusal};

/// First rest of an offering without capacity.
const CAPACITY_REST: SignedDuration = SignedDuration::from_mins(3);
/// Longest rest of an offering without capacity.
const CAPACITY_REST_MAX: SignedDuration = SignedDuration::from_mins(30);
/// Rest of a market and family whose limit is reached; raising a limit takes
/// AWS longer than this.
const QUOTA_REST: SignedDuration = SignedDuration::from_mins(15);

/// One offering's rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cold {
    /// Why.
    pub refusal: Refusal,
    /// Until when.
    pub until: Timestamp,
    /// Refusals in a row.
    pub times: u32,
}

/// Offerings that rest, shared by every pool of an account and region.
#[derive(Clone, Debug, Default)]
pub struct ColdOfferings {
    by_offering: BTreeMap<Offering, Cold>,
}

impl ColdOfferings {
    /// Remembers a refusal of `offering`. A quota refusal rests every one of
    /// `known` that counts against the same limit. Other classes say nothing
    /// about an offering and are ignored.
    ///
    /// An offering without capacity that rests already goes on resting: pools
    /// that ask at the same time learn the same thing, not something worse.
    pub fn refused(
        &mut self,
        offering: &Offering,
        refusal: &Refusal,
        known: &[Offering],
        now: Timestamp,
    ) {
        match refusal.class {
            ErrorClass::Capacity if self.at(offering, now).is_none() => {
                let times = self.by_offering.get(offering).map_or(0, |c| c.times) + 1;
                let rest = capacity_rest(times);
                self.rest(offering.clone(), refusal, now, rest, times);
            }
            ErrorClass::Quota => {
                let same_limit = known.iter().filter(|o| o.quota() == offering.quota());
                for offering in same_limit.chain([offering]) {
                    self.rest(offering.clone(), refusal, now, QUOTA_REST, 1);
                }
            }
            _ => {}
        }
    }

    /// Forgets refusals of an offering that was granted.
    pub fn granted(&mut self, offering: &Offering) {
        self.by_offering.remove(offering);
    }

    /// Why `offering` rests at `now`, if it does.
    pub fn at(&self, offering: &Offering, now: Timestamp) -> Option<&Cold> {
        self.by_offering.get(offering).filter(|c| c.until > now)
    }

    /// Those of `offerings` that rest at `now`.
    pub fn among<'a>(
        &'a self,
        offerings: &'a [Offering],
        now: Timestamp,
    ) -> impl Iterator<Item = (&'a Offering, &'a Cold)> {
        offerings
            .iter()
            .filter_map(move |o| self.at(o, now).map(|cold| (o, cold)))
    }

    fn rest(
        &mut self,
        offering: Offering,
        refusal: &Refusal,
        now: Timestamp,
        rest: SignedDuration,
        times: u32,
    ) {
        let until = now.saturating_add(rest).unwrap_or(Timestamp::MAX);
        let cold = Cold {
            refusal: refusal.clone(),
            // Kubernetes keeps whole seconds: a fraction would differ from the
            // stored status in every reconcile.
            until: Timestamp::from_second(until.as_second()).unwrap_or(until),
            times,
        };
        self.by_offering.insert(offering, cold);
    }
}

fn capacity_rest(times: u32) -> SignedDuration {
    let factor = 1_i32 << times.saturating_sub(1).min(8);
    CAPACITY_REST
        .checked_mul(factor)
        .unwrap_or(CAPACITY_REST_MAX)
        .min(CAPACITY_REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Market;

    fn offering(instance_type: &str, zone: &str, market: Market) -> Offering {
        Offering {
            instance_type: instance_type.into(),
            zone: zone.into(),
            market,
        }
    }

    fn refusal(class: ErrorClass) -> Refusal {
        Refusal {
            class,
            code: "Code".into(),
            message: "message".into(),
        }
    }

    #[test]
    fn an_offering_without_capacity_rests_longer_each_time_and_alone() {
        let mut now = Timestamp::UNIX_EPOCH;
        let a = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let b = offering("g4dn.xlarge", "us-east-1b", Market::Spot);
        let mut cold = ColdOfferings::default();
        let mut rests = Vec::new();
        for _ in 0..7 {
            let known = std::slice::from_ref(&b);
            cold.refused(&a, &refusal(ErrorClass::Capacity), known, now);
            let until = cold.at(&a, now).unwrap().until;
            rests.push(until.duration_since(now).as_mins());
            assert!(cold.at(&b, now).is_none());
            assert!(cold.at(&a, until).is_none(), "a rest ends");
            now = until;
        }
        assert_eq!(rests, [3, 6, 12, 24, 30, 30, 30]);
    }

    #[test]
    fn many_pools_refused_at_once_do_not_lengthen_the_rest() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut cold = ColdOfferings::default();
        for _ in 0..7 {
            cold.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        }
        let until = cold.at(&spot, now).unwrap().until;
        assert_eq!(until.duration_since(now), CAPACITY_REST);
    }

    #[test]
    fn a_rest_ends_at_a_time_that_a_status_can_hold() {
        let now = Timestamp::new(1, 999_999_999).unwrap();
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut cold = ColdOfferings::default();
        cold.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        assert_eq!(cold.at(&spot, now).unwrap().until.subsec_nanosecond(), 0);
    }

    #[test]
    fn a_reached_limit_rests_its_family_and_market_and_nothing_else() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let same = offering("g5.xlarge", "us-east-1b", Market::Spot);
        let on_demand = offering("g4dn.xlarge", "us-east-1a", Market::OnDemand);
        let known = [spot.clone(), same.clone(), on_demand.clone()];
        let mut cold = ColdOfferings::default();
        cold.refused(&spot, &refusal(ErrorClass::Quota), &known, now);
        assert!(cold.at(&spot, now).is_some());
        assert!(cold.at(&same, now).is_some());
        assert!(cold.at(&on_demand, now).is_none());
    }

    #[test]
    fn throttling_says_nothing_about_an_offering() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut cold = ColdOfferings::default();
        for class in [
            ErrorClass::Throttled,
            ErrorClass::Transient,
            ErrorClass::Denied,
            ErrorClass::Configuration,
        ] {
            cold.refused(&spot, &refusal(class), &[], now);
            assert!(cold.at(&spot, now).is_none(), "{class}");
        }
    }

    #[test]
    fn a_granted_offering_is_warm_again() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut cold = ColdOfferings::default();
        cold.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        cold.granted(&spot);
        assert!(cold.at(&spot, now).is_none());
    }
}
