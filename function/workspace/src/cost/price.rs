//! What runs, and what it costs per hour.

use api::cost::CostSource;

/// What runs, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Running {
    /// Nothing runs.
    Nothing,
    /// Something runs whose price nobody knows.
    Unpriced,
    /// US dollars per hour, and where the price comes from.
    Priced(f64, CostSource),
}

/// Whether an amount can be a price.
pub fn is_price(usd: f64) -> bool {
    usd.is_finite() && usd >= 0.0
}
