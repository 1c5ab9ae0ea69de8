//! Metrics of the events of managed resources.

use super::{Counters, Metrics};
use crate::happened::Happened;

/// Counts events by type and reason. Clones share the counters.
#[derive(Clone, Debug)]
pub struct EventCounts(Counters);

impl EventCounts {
    /// Registers counters named `name` and `_total`, for example `pool_events`.
    pub fn new(metrics: &Metrics, name: &str, help: &str) -> Self {
        let counters = Counters::default();
        metrics.register(name, help, &counters);
        Self(counters)
    }

    /// Counts one event. Reasons are constant words, so there are few series.
    pub fn count(&self, happened: &Happened) {
        let labels = vec![
            ("type", happened.type_().to_owned()),
            ("reason", happened.reason.to_owned()),
        ];
        self.0.get_or_create_owned(&labels).inc();
    }
}
