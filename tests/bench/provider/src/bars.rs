//! The limits that the provider promises to keep, and whether it keeps them.

use crate::figures::Figures;
use crate::process::MIB;

/// The most resident memory at rest, in MiB.
const MEMORY: f64 = 58.0;
/// The longest time from an interruption to the request for the replacement, in seconds.
const REPLACED: f64 = 1.0;
/// The longest time from the end of a pool's time to the end of an instance, in seconds.
const LATE: f64 = 5.0;
/// The most calls at rest, as a share of the naive provider's calls at rest.
const CALLS: f64 = 0.1;

/// A promise and the measured figure.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    what: &'static str,
    is: f64,
    at_most: f64,
}

/// All promises.
pub(crate) fn of(figures: &Figures) -> [Bar; 8] {
    let bar = |what, is, at_most| Bar { what, is, at_most };
    [
        bar(
            "AWS calls per idle reconcile",
            figures.calls_per_reconcile(),
            0.0,
        ),
        bar(
            "status writes per idle reconcile",
            figures.writes_per_reconcile(),
            0.0,
        ),
        bar("MiB at rest", figures.rest.resident / MIB, MEMORY),
        bar(
            "s from interruption to replacement, p99",
            figures.replaced[1],
            REPLACED,
        ),
        bar("s from endsAt to the latest end", figures.latest, LATE),
        bar("of the naive calls/s at rest", figures.ratio(), CALLS),
        bar(
            "console calls per new instance",
            figures.consoles_per_instance(),
            1.0,
        ),
        bar("console calls at rest", figures.consoles_at_rest(), 0.0),
    ]
}

impl Bar {
    /// Whether the promise is kept. If the figure could not be measured (NaN), it is not.
    pub(crate) fn met(&self) -> bool {
        self.is <= self.at_most
    }

    /// A message for people about a promise that is not kept.
    pub(crate) fn missed(&self) -> Option<String> {
        let Self { what, is, at_most } = self;
        (!self.met()).then(|| format!("missed: {is:.3} {what}, more than {at_most}"))
    }
}

/// All measured figures in one line.
pub(crate) fn summary(bars: &[Bar]) -> String {
    let all: Vec<String> = bars
        .iter()
        .map(|bar| format!("{:.3} {}", bar.is, bar.what))
        .collect();
    all.join(", ")
}
