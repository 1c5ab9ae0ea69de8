//! Prices of machines and home volumes on EC2.

use api::capacity::{CapacityType, InstanceCapacityType};
use api::catalogue::Prices;
use api::cost::CostSource;
use function_workspace::cost::ledger::rounded;
use function_workspace::cost::price::{self, Homes, Running, is_price};

use crate::instance_types::InstanceType;

/// A running machine on EC2.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The instance type.
    pub instance_type: String,
    /// The market.
    pub capacity_type: InstanceCapacityType,
    /// The spot price in US dollars per hour, if the provider knows it.
    pub hourly_usd: Option<f64>,
}

/// A home volume that exists in EC2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeVolume<'a> {
    /// The volume id.
    pub id: &'a str,
    /// The size in GiB.
    pub size_gib: u64,
    /// Whether the volume stays when the claim is deleted.
    pub stays: bool,
}

/// The price of all machines together.
pub fn of_machines(prices: Option<&Prices>, region: &str, machines: &[Machine]) -> Running {
    let mut sum = 0.0;
    let mut source = CostSource::Catalogue;
    for machine in machines {
        let spot = machine.capacity_type == InstanceCapacityType::Spot;
        let shown = machine.hourly_usd.filter(|usd| spot && is_price(*usd));
        let listed = || price::of_type(prices?, region, &machine.instance_type, spot);
        let Some(price) = shown.or_else(listed) else {
            return Running::Unpriced;
        };
        if shown.is_some() {
            source = CostSource::SpotPrice;
        }
        sum += price;
    }
    match machines {
        [] => Running::Nothing,
        _ => Running::Priced(rounded(sum), source),
    }
}

/// The home volumes and their price.
pub fn of_volumes(prices: Option<&Prices>, region: &str, volumes: &[HomeVolume<'_>]) -> Homes {
    let listed = prices.and_then(|prices| prices.volume_gib_month_usd.get(region));
    let of_volume = |volume: &HomeVolume<'_>| price::of_home(volume.size_gib, listed.copied());
    Homes::Known {
        price: price::of_homes(volumes.iter().map(of_volume)),
        names: volumes.iter().map(|volume| volume.id.to_owned()).collect(),
        stay: volumes.iter().any(|volume| volume.stays),
    }
}

/// The highest price of a workspace on EC2 in US dollars per hour, over the types and markets that
/// it may get.
///
/// # Errors
///
/// The path of a price that the catalogue does not have.
pub fn highest(
    prices: Option<&Prices>,
    region: &str,
    types: &[InstanceType],
    market: CapacityType,
) -> Result<f64, String> {
    let spot = market == CapacityType::Spot;
    types.iter().try_fold(0.0, |highest: f64, t| {
        let price = prices.and_then(|prices| price::of_type(prices, region, &t.name, spot));
        let missing = || format!("data.prices.hourlyUsd.{region}.{}", t.name);
        Ok(highest.max(price.ok_or_else(missing)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prices() -> Prices {
        serde_json::from_value(json!({
            "asOf": "2026-11-01",
            "hourlyUsd": {"us-east-1": {"g5.xlarge": 1.006, "g4dn.xlarge": 0.526}},
            "spotHourlyUsd": {"us-east-1": {"g5.xlarge": 0.4}},
            "flavorHourlyUsd": {"gpu": 0.5}
        }))
        .unwrap()
    }

    fn machine(name: &str, spot: bool, shown: Option<f64>) -> Machine {
        Machine {
            instance_type: name.into(),
            capacity_type: if spot {
                InstanceCapacityType::Spot
            } else {
                InstanceCapacityType::OnDemand
            },
            hourly_usd: shown,
        }
    }

    #[test]
    fn a_machine_costs_the_price_of_its_market() {
        let of = |machines: &[Machine]| of_machines(Some(&prices()), "us-east-1", machines);
        let listed = |usd| Running::Priced(usd, CostSource::Catalogue);
        assert_eq!(of(&[machine("g5.xlarge", false, None)]), listed(1.006));
        assert_eq!(of(&[machine("g5.xlarge", true, None)]), listed(0.4));
        assert_eq!(
            of(&[machine("g5.xlarge", true, Some(0.31))]),
            Running::Priced(0.31, CostSource::SpotPrice)
        );
        assert_eq!(
            of(&[machine("g4dn.xlarge", true, None)]),
            listed(0.526),
            "at most"
        );
        let both = [
            machine("g5.xlarge", false, None),
            machine("g4dn.xlarge", false, None),
        ];
        assert_eq!(of(&both), listed(1.532), "two machines cost twice");
        assert_eq!(of(&[machine("p5.48xlarge", true, None)]), Running::Unpriced);
        assert_eq!(of(&[]), Running::Nothing);
    }

    #[test]
    fn a_budget_counts_with_the_highest_price_of_a_claim() {
        let types = ["g4dn.xlarge", "g5.xlarge"].map(|name| InstanceType {
            name: name.into(),
            path: String::new(),
        });
        let of = |market| highest(Some(&prices()), "us-east-1", &types, market);
        assert_eq!(of(CapacityType::SpotWithFallback), Ok(1.006));
        assert_eq!(of(CapacityType::OnDemand), Ok(1.006));
        assert_eq!(of(CapacityType::Spot), Ok(0.526));
        assert_eq!(
            highest(None, "us-east-1", &types, CapacityType::Spot),
            Err("data.prices.hourlyUsd.us-east-1.g4dn.xlarge".into())
        );
    }
}
