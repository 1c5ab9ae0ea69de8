//! The price of the running machines.

use api::cost::CostSource;

/// The running machines and their price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Running {
    /// No machine runs.
    Nothing,
    /// Machines run and their price is not known.
    Unpriced,
    /// US dollars per hour, and the source of the price.
    Priced(f64, CostSource),
}

/// Whether an amount is a valid price: finite and not negative.
pub fn is_price(usd: f64) -> bool {
    usd.is_finite() && usd >= 0.0
}
