//! A cache of the offerings that EC2 refused recently, like Karpenter's unavailable-offerings
//! cache. One unavailable offering blocks no other.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{ErrorClass, Offering, Refusal};

/// How long an offering is unavailable after its first refusal for capacity.
const CAPACITY_TTL: SignedDuration = SignedDuration::from_mins(3);
/// The longest time that an offering is unavailable for capacity.
const CAPACITY_TTL_MAX: SignedDuration = SignedDuration::from_mins(30);
/// The time after which a refusal counts half.
const HALF_LIFE: SignedDuration = SignedDuration::from_hours(3);
/// The score below which a refusal is forgotten.
const FORGOTTEN: f64 = 0.05;
/// How long the offerings of a market and family are unavailable after their limit was reached. AWS
/// takes longer than this to raise a limit.
const QUOTA_TTL: SignedDuration = SignedDuration::from_mins(15);

/// How long an offering is unavailable that AWS does not sell, or not as the pool asks for it.
const UNSOLD_TTL: SignedDuration = SignedDuration::from_hours(1);

/// Why an offering is unavailable, and until when.
#[derive(Clone, Debug, PartialEq)]
pub struct Unavailable {
    /// EC2's refusal.
    pub refusal: Refusal,
    /// The time from which the offering may be asked for again.
    pub until: Timestamp,
    /// The number of recent refusals and interruptions. Each one counts less as time passes.
    score: f64,
    /// The time at which `score` was computed.
    scored_at: Timestamp,
}

impl Unavailable {
    fn score(&self, now: Timestamp) -> f64 {
        let age = now.duration_since(self.scored_at).as_secs_f64().max(0.0);
        self.score * 0.5_f64.powf(age / HALF_LIFE.as_secs_f64())
    }
}

/// The unavailable offerings of an account and region, shared by all its pools. An offering that is
/// refused or interrupted repeatedly is unavailable for longer each time, even if EC2 grants it in
/// between: its instances do not live long.
#[derive(Clone, Debug, Default)]
pub struct UnavailableOfferings {
    by_offering: BTreeMap<Offering, Unavailable>,
}

impl UnavailableOfferings {
    /// Records a refusal of `offering`. A quota refusal makes every offering in `known` unavailable
    /// that counts against the same limit. Other classes say nothing about an offering and are
    /// ignored.
    ///
    /// A capacity refusal of an offering that is already unavailable changes nothing: pools that
    /// ask at the same time get the same refusal.
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
                let score = before.map_or(0.0, |unavailable| unavailable.score(now)) + 1.0;
                let ttl = if refusal.is_unsold() {
                    UNSOLD_TTL
                } else {
                    capacity_ttl(score)
                };
                self.put(offering.clone(), refusal, now, ttl, score);
            }
            ErrorClass::Quota => {
                let same_limit = known.iter().filter(|o| o.quota() == offering.quota());
                for offering in same_limit.chain([offering]) {
                    let before = self.by_offering.get(offering);
                    let score = before.map_or(0.0, |unavailable| unavailable.score(now));
                    self.put(offering.clone(), refusal, now, QUOTA_TTL, score);
                }
            }
            _ => {}
        }
    }

    /// Records that EC2 refused `offering` by name, and not the offerings beside it, for a reason
    /// that is neither capacity nor a limit.
    pub fn unsold(&mut self, offering: &Offering, refusal: &Refusal, now: Timestamp) {
        let before = self.by_offering.get(offering);
        let score = before.map_or(0.0, |unavailable| unavailable.score(now));
        self.put(offering.clone(), refusal, now, UNSOLD_TTL, score);
    }

    /// Makes a granted offering available again. Its score is kept.
    pub fn granted(&mut self, offering: &Offering, now: Timestamp) {
        self.by_offering
            .retain(|_, unavailable| unavailable.until > now || unavailable.score(now) > FORGOTTEN);
        if let Some(unavailable) = self.by_offering.get_mut(offering) {
            unavailable.until = unavailable.until.min(now);
        }
    }

    /// Makes every offering available again, because a person says that the cause is gone. The
    /// scores are kept: an offering that is refused again is unavailable for longer.
    pub fn retry(&mut self, now: Timestamp) {
        for unavailable in self.by_offering.values_mut() {
            unavailable.until = unavailable.until.min(now);
        }
    }

    /// Why `offering` is unavailable at `now`, if it is.
    pub fn at(&self, offering: &Offering, now: Timestamp) -> Option<&Unavailable> {
        self.by_offering.get(offering).filter(|c| c.until > now)
    }

    /// Those of `offerings` that are unavailable at `now`.
    pub fn among<'a>(
        &'a self,
        offerings: &'a [Offering],
        now: Timestamp,
    ) -> impl Iterator<Item = (&'a Offering, &'a Unavailable)> {
        offerings
            .iter()
            .filter_map(move |o| self.at(o, now).map(|unavailable| (o, unavailable)))
    }

    fn put(
        &mut self,
        offering: Offering,
        refusal: &Refusal,
        now: Timestamp,
        ttl: SignedDuration,
        score: f64,
    ) {
        let until = now.saturating_add(ttl).unwrap_or(Timestamp::MAX);
        let unavailable = Unavailable {
            refusal: refusal.clone(),
            // Kubernetes stores whole seconds: with a fraction, this would differ from the stored
            // status in every reconcile.
            until: Timestamp::from_second(until.as_second()).unwrap_or(until),
            score,
            scored_at: now,
        };
        self.by_offering.insert(offering, unavailable);
    }
}

fn capacity_ttl(score: f64) -> SignedDuration {
    let seconds = CAPACITY_TTL.as_secs_f64() * (score - 1.0).clamp(0.0, 8.0).exp2();
    let ttl = SignedDuration::try_from_secs_f64(seconds.round());
    ttl.unwrap_or(CAPACITY_TTL_MAX).min(CAPACITY_TTL_MAX)
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
    fn an_offering_without_capacity_is_unavailable_for_longer_each_time_and_alone() {
        let mut now = Timestamp::UNIX_EPOCH;
        let a = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let b = offering("g4dn.xlarge", "us-east-1b", Market::Spot);
        let mut unavailable = UnavailableOfferings::default();
        let mut ttls = Vec::new();
        for _ in 0..7 {
            let known = std::slice::from_ref(&b);
            unavailable.refused(&a, &refusal(ErrorClass::Capacity), known, now);
            let until = unavailable.at(&a, now).unwrap().until;
            ttls.push(until.duration_since(now).as_mins());
            assert!(unavailable.at(&b, now).is_none());
            assert!(unavailable.at(&a, until).is_none(), "it ends");
            now = until;
        }
        assert_eq!(ttls, [3, 5, 11, 21, 30, 30, 30]);
    }

    #[test]
    fn an_offering_that_a_person_asks_for_again_rests_longer_if_it_is_refused_again() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut unavailable = UnavailableOfferings::default();
        unavailable.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        unavailable.retry(now);
        assert!(unavailable.at(&spot, now).is_none());
        unavailable.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        let until = unavailable.at(&spot, now).unwrap().until;
        assert!(until.duration_since(now) > CAPACITY_TTL);
    }

    #[test]
    fn many_pools_refused_at_once_do_not_lengthen_the_ttl() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut unavailable = UnavailableOfferings::default();
        for _ in 0..7 {
            unavailable.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        }
        let until = unavailable.at(&spot, now).unwrap().until;
        assert_eq!(until.duration_since(now), CAPACITY_TTL);
    }

    #[test]
    fn an_unavailable_offering_has_an_end_that_a_status_can_hold() {
        let now = Timestamp::new(1, 999_999_999).unwrap();
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut unavailable = UnavailableOfferings::default();
        unavailable.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        assert_eq!(
            unavailable
                .at(&spot, now)
                .unwrap()
                .until
                .subsec_nanosecond(),
            0
        );
    }

    #[test]
    fn a_reached_limit_makes_only_its_family_and_market_unavailable() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let same = offering("g5.xlarge", "us-east-1b", Market::Spot);
        let on_demand = offering("g4dn.xlarge", "us-east-1a", Market::OnDemand);
        let known = [spot.clone(), same.clone(), on_demand.clone()];
        let mut unavailable = UnavailableOfferings::default();
        unavailable.refused(&spot, &refusal(ErrorClass::Quota), &known, now);
        assert!(unavailable.at(&spot, now).is_some());
        assert!(unavailable.at(&same, now).is_some());
        assert!(unavailable.at(&on_demand, now).is_none());
    }

    #[test]
    fn throttling_says_nothing_about_an_offering() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut unavailable = UnavailableOfferings::default();
        for class in [
            ErrorClass::Throttled,
            ErrorClass::Transient,
            ErrorClass::Denied,
            ErrorClass::Configuration,
        ] {
            unavailable.refused(&spot, &refusal(class), &[], now);
            assert!(unavailable.at(&spot, now).is_none(), "{class}");
        }
    }

    #[test]
    fn a_granted_offering_is_available_again() {
        let now = Timestamp::UNIX_EPOCH;
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut unavailable = UnavailableOfferings::default();
        unavailable.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
        unavailable.granted(&spot, now);
        assert!(unavailable.at(&spot, now).is_none());
    }

    #[test]
    fn an_offering_that_is_granted_and_reclaimed_repeatedly_is_unavailable_for_longer() {
        let spot = offering("g4dn.xlarge", "us-east-1a", Market::Spot);
        let mut unavailable = UnavailableOfferings::default();
        let mut now = Timestamp::UNIX_EPOCH;
        let mut interrupted = |now: Timestamp| {
            unavailable.refused(&spot, &refusal(ErrorClass::Capacity), &[], now);
            let until = unavailable.at(&spot, now).unwrap().until;
            unavailable.granted(&spot, until);
            until.duration_since(now).as_mins()
        };
        let mut ttls = Vec::new();
        for _ in 0..4 {
            ttls.push(interrupted(now));
            now += SignedDuration::from_mins(40);
        }
        assert_eq!(ttls, [3, 5, 9, 14], "each counts half after three hours");
        let tomorrow = now + SignedDuration::from_hours(24);
        assert_eq!(interrupted(tomorrow), 3, "what was long ago is forgotten");
    }
}
