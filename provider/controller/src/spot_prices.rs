//! The spot prices of a region, as the provider last read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2, Ec2Error};
use provider_core::{Instance, Market};

/// US dollars per hour, by instance type and zone.
pub type SpotPrices = BTreeMap<(String, String), f64>;

/// How long the prices of the same types are used.
const LIFE: SignedDuration = SignedDuration::from_hours(1);
/// The shortest time between two calls, also after a failure and for new types.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// What was read last, and when.
#[derive(Debug, Default)]
pub struct Read {
    at: Option<Timestamp>,
    types: BTreeSet<String>,
    prices: Arc<SpotPrices>,
}

impl Read {
    /// The prices of the types of these instances that run on the spot market. Calls EC2 once an
    /// hour, earlier for further types, and never without such an instance. After a failure the last
    /// prices stay: an account may not permit the call, and prices are a convenience.
    pub async fn of(
        &mut self,
        ec2: &dyn Ec2,
        instances: impl Iterator<Item = &Instance>,
        now: Timestamp,
    ) -> (Arc<SpotPrices>, Option<Ec2Error>) {
        let spot = instances.filter(|instance| {
            instance.state.is_live() && instance.offering.market == Market::Spot
        });
        let types: BTreeSet<&str> = spot.map(|i| i.offering.instance_type.as_str()).collect();
        if !self.is_due(&types, now) {
            return (Arc::clone(&self.prices), None);
        }
        let wanted: Vec<String> = types.iter().map(|name| (*name).to_owned()).collect();
        let read = ec2.spot_prices(&wanted, now).await;
        self.at = Some(now);
        self.types = wanted.into_iter().collect();
        let error = match read {
            Ok(prices) if prices != *self.prices => {
                self.prices = Arc::new(prices);
                None
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        (Arc::clone(&self.prices), error)
    }

    fn is_due(&self, types: &BTreeSet<&str>, now: Timestamp) -> bool {
        let Some(at) = self.at else {
            return !types.is_empty();
        };
        let age = now.duration_since(at);
        let is_old = age >= LIFE && !types.is_empty();
        let is_known = |name: &&str| self.types.contains(*name);
        is_old || (age >= PAUSE && !types.iter().all(is_known))
    }
}

/// The price of an instance in US dollars per hour; none for an on-demand instance, and without a
/// price of EC2.
pub fn of_instance(prices: &SpotPrices, instance: &Instance) -> Option<f64> {
    let offering = &instance.offering;
    if offering.market != Market::Spot {
        return None;
    }
    let key = (offering.instance_type.clone(), offering.zone.clone());
    prices.get(&key).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn types<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
        names.iter().copied().collect()
    }

    fn read(minute: i64, names: &[&str]) -> Read {
        Read {
            at: Some(at(minute)),
            types: names.iter().map(|name| (*name).to_owned()).collect(),
            prices: Arc::default(),
        }
    }

    #[test]
    fn a_region_without_spot_instances_costs_no_call() {
        assert!(!Read::default().is_due(&types(&[]), at(0)));
        assert!(!read(0, &["g5.xlarge"]).is_due(&types(&[]), at(120)));
    }

    #[test]
    fn prices_are_read_once_an_hour_and_sooner_for_another_type() {
        let known = read(0, &["g5.xlarge"]);
        assert!(Read::default().is_due(&types(&["g5.xlarge"]), at(0)));
        assert!(!known.is_due(&types(&["g5.xlarge"]), at(59)));
        assert!(known.is_due(&types(&["g5.xlarge"]), at(60)));
        assert!(!known.is_due(&types(&["g5.xlarge", "g6.xlarge"]), at(4)));
        assert!(known.is_due(&types(&["g5.xlarge", "g6.xlarge"]), at(5)));
    }
}
