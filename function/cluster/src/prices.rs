//! The price of the pods and homes of a workspace.

use std::collections::BTreeMap;

use api::catalogue::Prices;
use api::cluster::ChosenPods;
use api::cost::CostSource;
use function_workspace::cost::ledger::rounded;
use function_workspace::cost::price::{self, Homes, Running, is_price};
use function_workspace::quantity;

use crate::seen::{Seen, VolumeClaim};

/// The price of the running pods. `chosen` are their settings.
pub fn running(chosen: Option<&ChosenPods>, prices: Option<&Prices>, started: usize) -> Running {
    if started == 0 {
        return Running::Nothing;
    }
    let count = i32::try_from(started).unwrap_or(i32::MAX);
    let price = chosen.and_then(|pods| of(&pods.flavor, pods.size_permille, count, prices).ok());
    price.map_or(Running::Unpriced, |usd| {
        Running::Priced(rounded(usd), CostSource::Catalogue)
    })
}

/// The owner's homes that are bound to volumes, and their price. A home that Crossplane composes is
/// deleted with the claim.
pub fn homes(seen: Seen<'_>, owner: &str, prices: Option<&Prices>) -> Homes {
    if !seen.knows_homes() {
        return Homes::Unknown;
    }
    let homes: BTreeMap<&str, VolumeClaim<'_>> = seen
        .homes()
        .filter(|home| home.is_bound() && home.owner() == Some(owner))
        .map(|home| (home.name(), home))
        .collect();
    Homes::Known {
        price: price::of_homes(homes.values().map(|home| of_home(*home, prices))),
        names: homes
            .values()
            .filter_map(|home| home.namespaced_name())
            .collect(),
        stay: homes.keys().any(|name| !seen.composes_home(name)),
    }
}

/// The price of one home in US dollars per hour; none if the catalogue does not have it.
fn of_home(home: VolumeClaim<'_>, prices: Option<&Prices>) -> Option<f64> {
    let class = home.storage_class()?;
    let listed = prices?.storage_class_gib_month_usd.get(class);
    price::of_home(quantity::storage(home.size()?)?, listed.copied())
}

/// The price of pods of a flavor in US dollars per hour. Pods that are larger than their flavor cost
/// as many times more.
///
/// # Errors
///
/// The path of a price that the catalogue does not have.
pub fn of(
    flavor: &str,
    size_permille: Option<u32>,
    count: i32,
    prices: Option<&Prices>,
) -> Result<f64, String> {
    let price = prices.and_then(|prices| prices.flavor_hourly_usd.get(flavor));
    let price = price.copied().filter(|usd| is_price(*usd));
    let missing = || format!("data.prices.flavorHourlyUsd.{flavor}");
    let size = f64::from(size_permille.unwrap_or(1000)) / 1000.0;
    Ok(price.ok_or_else(missing)? * size * f64::from(count))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_cost_by_their_number_and_their_size() {
        let prices = json!({"asOf": "2026-11-01", "flavorHourlyUsd": {"t4": 0.5}});
        let prices: Prices = serde_json::from_value(prices).unwrap();
        let of = |size, count| of("t4", size, count, Some(&prices));
        assert_eq!(of(None, 1), Ok(0.5));
        assert_eq!(of(None, 3), Ok(1.5));
        assert_eq!(of(Some(4000), 1), Ok(2.0), "four GPUs of a flavor with one");
        assert_eq!(of(Some(1500), 2), Ok(1.5));
    }
}
