//! Metrics of calls to an API outside the cluster.

use super::{Counters, Metrics};

/// Counts calls by operation and result. Clones share the counters.
#[derive(Clone, Debug)]
pub struct Calls(Counters);

impl Calls {
    /// Registers counters named `name` and `_total`, for example `aws_ec2_api_calls`.
    pub fn new(metrics: &Metrics, name: &str, help: &str) -> Self {
        let counters = Counters::default();
        metrics.register(name, help, &counters);
        Self(counters)
    }

    /// Counts one call. Both words must come from small sets, because every pair is a series of its
    /// own.
    pub fn count(&self, operation: &str, result: &str) {
        let labels = vec![
            ("operation", operation.to_owned()),
            ("result", result.to_owned()),
        ];
        self.0.get_or_create_owned(&labels).inc();
    }
}
