//! The price of the pods of a workspace.

use api::catalogue::Prices;
use api::cluster::ChosenPods;
use api::cost::CostSource;
use function_workspace::cost::ledger::rounded;
use function_workspace::cost::price::{Running, is_price};

/// The input of a price.
#[derive(Clone, Copy, Debug)]
pub struct PodPrices<'a> {
    /// The catalogue's prices.
    pub prices: Option<&'a Prices>,
    /// The settings of the current pods; none before the first start.
    pub chosen: Option<&'a ChosenPods>,
    /// The flavor that the claim asks for.
    pub resolved: Option<&'a str>,
    /// The number of pods that the claim asks for.
    pub count: i32,
    /// The number of running pods.
    pub started: usize,
}

impl PodPrices<'_> {
    /// The price of the running pods.
    pub fn running(self) -> Running {
        if self.started == 0 {
            return Running::Nothing;
        }
        let flavor = self.chosen.map(|pods| pods.flavor.as_str());
        let pod = flavor.or(self.resolved).and_then(|name| self.of(name).ok());
        let count = u32::try_from(self.started).unwrap_or(u32::MAX);
        pod.map_or(Running::Unpriced, |pod| {
            Running::Priced(rounded(pod * f64::from(count)), CostSource::Catalogue)
        })
    }

    /// The price of all pods in US dollars per hour. Running pods keep the settings that they
    /// started with.
    ///
    /// # Errors
    ///
    /// The path of a price that the catalogue does not have.
    pub fn highest(self, is_on: bool) -> Result<f64, String> {
        let chosen = self.chosen.filter(|_| is_on);
        let (flavor, count) = match (chosen, self.resolved) {
            (Some(pods), _) => (pods.flavor.as_str(), pods.nodes),
            (None, resolved) => (resolved.unwrap_or_default(), self.count),
        };
        Ok(self.of(flavor)? * f64::from(count))
    }

    fn of(self, flavor: &str) -> Result<f64, String> {
        let price = self.prices.and_then(|p| p.flavor_hourly_usd.get(flavor));
        let price = price.copied().filter(|usd| is_price(*usd));
        price.ok_or_else(|| format!("data.prices.flavorHourlyUsd.{flavor}"))
    }
}
