//! Memory of what EC2 refused, so that one cold offering blocks no other.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{ErrorClass, Offering, Refusal};

/// First rest of an offering without capacity.
const CAPACITY_REST: SignedDuration = SignedDuration::from_mins(3);
/// Longest rest of an offering without capacity.
const CAPACITY_REST_MAX: SignedDuration = SignedDuration::from_mins(30);
/// After so long a refusal counts half.
const HALF_LIFE: SignedDuration = SignedDuration::from_hours(3);
/// A score that means nothing any more.
const FORGOTTEN: f64 = 0.05;
/// Rest of a market and family whose limit is reached; raising a limit takes
/// AWS longer than this.
const QUOTA_REST: SignedDuration = SignedDuration::from_mins(15);

/// One offering's rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Cold {
    /// Why.
    pub refusal: Refusal,
    /// Until when.
    pub until: Timestamp,
    /// Refusals and interruptions of late, each worth less as time passes.
    score: f64,
    /// When the score was that.
    scored_at: Timestamp,
}

impl Cold {
    fn score(&self, now: Timestamp) -> f64 {
        let age = now.duration_since(self.scored_at).as_secs_f64().max(0.0);
        self.score * 0.5_f64.powf(age / HALF_LIFE.as_secs_f64())
    }
}

/// Offerings that rest, shared by every pool of an account and region. One that is
/// refused or interrupted again and again rests longer each time, although it is
/// granted in between: what comes back from there lives briefly.
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
                let before = self.by_offering.get(offering);
                let score = before.map_or(0.0, |cold| cold.score(now)) + 1.0;
                let rest = capacity_rest(score);
                self.rest(offering.clone(), refusal, now, rest, score);
            }
            ErrorClass::Quota => {
                let same_limit = known.iter().filter(|o| o.quota() == offering.quota());
                for offering in same_limit.chain([offering]) {
                    let before = self.by_offering.get(offering);
                    let score = before.map_or(0.0, |cold| cold.score(now));
                    self.rest(offering.clone(), refusal, now, QUOTA_REST, score);
                }
            }
            _ => {}
        }
    }

    /// Ends the rest of an offering that was granted; its score goes on.
    pub fn granted(&mut self, offering: &Offering, now: Timestamp) {
        self.by_offering
            .retain(|_, cold| cold.until > now || cold.score(now) > FORGOTTEN);
        if let Some(cold) = self.by_offering.get_mut(offering) {
            cold.until = cold.until.min(now);
        }
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
        score: f64,
    ) {
        let until = now.saturating_add(rest).unwrap_or(Timestamp::MAX);
        let cold = Cold {
            refusal: refusal.clone(),
            // Kubernetes keeps whole seconds: a fraction would differ from the
            // stored status in every reconcile.
            until: Timestamp::from_second(until.as_second()).unwrap_or(until),
            score,
            scored_at: now,
        };
        self.by_offering.insert(offering, cold);
    }
}

fn capacity_rest(score: f64) -> SignedDuration {
    let seconds = CAPACITY_REST.as_secs_f64() * (score - 1.0).clamp(0.0, 8.0).exp2();
    let rest = SignedDuration::try_from_secs_f64(seconds.round());
    rest.unwrap_or(CAPACITY_REST_MAX).min(CAPACITY_REST_MAX)
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
        assert_eq!(rests, [3, 5, 11, 21, 30, 30, 30]);
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
        cold.granted(&spot, now);
        assert!(cold.at(&spot, now).is_none());
    }

    #[test]
    fn an_offering_that_grants_and_takes_back_again_rests_longer_until_it_behaves() {
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut cold = ColdOfferings::default();
        let mut now = Timestamp::UNIX_EPOCH;
        let mut interrupted = |now: Timestamp| {
            cold.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
            let until = cold.at(&spot, now).unwrap().until;
            cold.granted(&spot, until);
            until.duration_since(now).as_mins()
        };
        let mut rests = Vec::new();
        for _ in 0..4 {
            rests.push(interrupted(now));
            now += SignedDuration::from_mins(40);
        }
        assert_eq!(rests, [3, 5, 9, 14], "each counts half after three hours");
        let tomorrow = now + SignedDuration::from_hours(24);
        assert_eq!(interrupted(tomorrow), 3, "what was long ago is forgotten");
    }
}
