//! The price of what costs money now: running machines, or homes that exist.

use api::catalogue::Prices;
use api::cost::CostSource;

/// What costs money now, and its price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Running {
    /// No machine runs, or no home exists.
    Nothing,
    /// Something costs money, or may cost money, and its price is not known.
    Unpriced,
    /// US dollars per hour, and the source of the price.
    Priced(f64, CostSource),
}

/// The homes of a workspace.
#[derive(Clone, Debug, PartialEq)]
pub enum Homes {
    /// The function does not see all of them.
    Unknown,
    /// The homes that exist.
    Known {
        /// The price of all of them.
        price: Running,
        /// Volume ids of EC2, or `namespace/name` of `PersistentVolumeClaim`s.
        names: Vec<String>,
        /// Whether one of them stays when the claim is deleted.
        stay: bool,
    },
}

impl Homes {
    /// The price of all homes.
    pub fn price(&self) -> Running {
        match self {
            Self::Unknown => Running::Unpriced,
            Self::Known { price, .. } => *price,
        }
    }
}

/// The price of an instance type in the catalogue, in US dollars per hour. A spot instance never costs
/// more than on-demand, unless a request sets a higher maximum price.
pub fn of_type(prices: &Prices, region: &str, instance_type: &str, spot: bool) -> Option<f64> {
    let of_spot = prices.spot_hourly_usd.get(region).filter(|_| spot);
    let of_spot = of_spot.and_then(|prices| prices.get(instance_type));
    let on_demand = prices.hourly_usd.get(region);
    let on_demand = on_demand.and_then(|prices| prices.get(instance_type));
    let price = of_spot.or(on_demand).copied();
    price.filter(|usd| is_price(*usd))
}

/// The price of one home in US dollars per hour, from its size and the catalogue's price for each
/// GiB and month. AWS's price calculator counts 730 hours in a month.
pub fn of_home(size_gib: u64, gib_month_usd: Option<f64>) -> Option<f64> {
    const HOURS: f64 = 730.0;
    let usd = gib_month_usd.filter(|usd| is_price(*usd))?;
    // 16 TiB is the largest volume of EC2; a size that no volume has is cut off.
    let size = f64::from(u32::try_from(size_gib).unwrap_or(u32::MAX));
    Some(size * usd / HOURS)
}

/// The price of all homes together. `prices` has none for a home whose price is not known.
pub fn of_homes(prices: impl IntoIterator<Item = Option<f64>>) -> Running {
    let mut sum = None;
    for price in prices {
        let Some(price) = price else {
            return Running::Unpriced;
        };
        sum = Some(sum.unwrap_or(0.0) + price);
    }
    sum.map_or(Running::Nothing, |usd: f64| {
        // Small homes cost less than the four decimals of amounts: 10 GiB cost 0.0011 an hour.
        let usd = (usd * 1e8).round() / 1e8;
        Running::Priced(usd, CostSource::Catalogue)
    })
}

/// Whether an amount is a valid price: finite and not negative.
pub fn is_price(usd: f64) -> bool {
    usd.is_finite() && usd >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_costs_its_size_for_as_long_as_it_exists() {
        // A volume of 16 TiB costs 1,311 US dollars a month at AWS's price for gp3.
        let hourly = of_home(16_384, Some(0.08)).unwrap();
        assert!((hourly * 730.0 - 1_310.72).abs() < 1e-6, "{hourly}");
        assert_eq!(of_home(10, None), None);
        assert_eq!(of_home(10, Some(f64::NAN)), None);
        assert_eq!(of_homes([]), Running::Nothing);
        let both = Running::Priced(0.75, CostSource::Catalogue);
        assert_eq!(of_homes([Some(0.25), Some(0.5)]), both);
        assert_eq!(of_homes([Some(0.25), None]), Running::Unpriced);
    }
}
