//! What the nodes of a workspace cost per hour.

use api::catalogue::Prices;
use api::cluster::ChosenPods;
use api::cost::CostSource;
use function_workspace::cost::ledger::rounded;
use function_workspace::cost::price::{Running, is_price};

/// The nodes of a workspace in the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    /// The catalogue's prices.
    pub prices: Option<&'a Prices>,
    /// What its pods were made of.
    pub chosen: Option<&'a ChosenPods>,
    /// The flavor that the claim asks for.
    pub wanted: Option<&'a str>,
    /// How many nodes it asks for.
    pub count: i32,
    /// How many run.
    pub started: usize,
}

impl Nodes<'_> {
    /// What those that run cost.
    pub fn running(self) -> Running {
        if self.started == 0 {
            return Running::Nothing;
        }
        let flavor = self.chosen.map(|pods| pods.flavor.as_str());
        let node = flavor.or(self.wanted).and_then(|name| self.of(name).ok());
        let count = u32::try_from(self.started).unwrap_or(u32::MAX);
        node.map_or(Running::Unpriced, |node| {
            Running::Priced(rounded(node * f64::from(count)), CostSource::Catalogue)
        })
    }

    /// What all of them cost: what pods are made of is chosen when they start.
    ///
    /// # Errors
    ///
    /// The path of a price that the catalogue lacks.
    pub fn highest(self, is_on: bool) -> Result<f64, String> {
        let chosen = self.chosen.filter(|_| is_on);
        let (flavor, count) = match (chosen, self.wanted) {
            (Some(pods), _) => (pods.flavor.as_str(), pods.nodes),
            (None, wanted) => (wanted.unwrap_or_default(), self.count),
        };
        Ok(self.of(flavor)? * f64::from(count))
    }

    fn of(self, flavor: &str) -> Result<f64, String> {
        let price = self.prices.and_then(|p| p.flavor_hourly_usd.get(flavor));
        let price = price.copied().filter(|usd| is_price(*usd));
        price.ok_or_else(|| format!("data.prices.flavorHourlyUsd.{flavor}"))
    }
}
