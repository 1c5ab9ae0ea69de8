//! Metrics, under the names that Crossplane's providers in Go give them, so that
//! dashboards serve both.
//!
//! | module | metrics |
//! |---|---|
//! | [`states`] | `crossplane_managed_resource_{exists,ready,synced}` |
//! | [`lifecycle`] | `crossplane_managed_resource_*_seconds` |
//! | [`reconciles`] | `controller_runtime_reconcile_*` |
//! | [`api_server`] | `rest_client_requests_total` |
//! | [`calls`] | calls of a cloud's API, under the provider's own name |
//! | [`happened`] | events of managed resources, under the provider's own name |

pub mod api_server;
pub mod calls;
pub mod happened;
pub mod lifecycle;
pub mod reconciles;
pub mod states;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Metric, Registry};

use states::States;

/// The labels that distinguish the samples of one metric.
pub(crate) type Labels = Vec<(&'static str, String)>;
pub(crate) type Counters = Family<Labels, Counter>;

/// All metrics of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<RwLock<Registry>>,
    states: Arc<States>,
}

impl Metrics {
    /// Only the states of managed resources, which are empty at first.
    pub fn new() -> Self {
        let states = Arc::new(States::default());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(&states)));
        Self {
            registry: Arc::new(RwLock::new(registry)),
            states,
        }
    }

    /// The counts of managed resources by state.
    pub fn states(&self) -> &States {
        &self.states
    }

    /// Registers a collector. It is asked for its samples at every scrape.
    pub fn collect(&self, collector: Box<dyn Collector>) {
        self.write().register_collector(collector);
    }

    /// All metrics in `OpenMetrics` 1.0.
    pub fn open_metrics(&self) -> String {
        let mut text = String::new();
        // A write into memory does not fail.
        let _ = text::encode(&mut text, &self.read());
        text
    }

    /// All metrics in Prometheus' own text format. There, a counter is described under the name
    /// that its samples have.
    pub fn prometheus_text(&self) -> String {
        let text = self.open_metrics();
        let lines: Vec<&str> = text.lines().filter(|line| *line != "# EOF").collect();
        let is_counter = |line: &str| line.starts_with("# TYPE ") && line.ends_with(" counter");
        let describe = |(index, line): (usize, &&str)| {
            // The line with the type follows the line with the help.
            let of_counter =
                is_counter(line) || lines.get(index + 1).is_some_and(|next| is_counter(next));
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some(what), Some(name), Some(rest)) if of_counter => {
                    format!("# {what} {name}_total {rest}\n")
                }
                _ => format!("{line}\n"),
            }
        };
        lines.iter().enumerate().map(describe).collect()
    }

    /// `name` has no `_total`: the formats add it to counters.
    pub(crate) fn register<M: Metric + Clone>(&self, name: &str, help: &str, metric: &M) {
        self.write().register(name, help, metric.clone());
    }

    fn read(&self) -> RwLockReadGuard<'_, Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Registry> {
        self.registry
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::calls::Calls;
    use super::*;

    #[test]
    fn a_counter_has_one_name_in_prometheus_own_format() {
        let metrics = Metrics::new();
        let calls = Calls::new(&metrics, "cloud_api_calls", "Calls of the cloud's API");
        calls.count("RunInstances", "success");
        let text = metrics.prometheus_text();
        for line in [
            "# HELP cloud_api_calls_total Calls of the cloud's API.",
            "# TYPE cloud_api_calls_total counter",
            "cloud_api_calls_total{operation=\"RunInstances\",result=\"success\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        assert!(!text.contains("# EOF"));
        assert!(metrics.open_metrics().ends_with("# EOF\n"));
    }
}
