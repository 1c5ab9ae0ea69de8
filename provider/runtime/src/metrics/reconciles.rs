//! Metrics of reconciles, as controller-runtime has them.

use std::time::Instant;

use kube::runtime::controller::Action;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::{Counters, Labels, Metrics};

/// The buckets in seconds: a selection of controller-runtime's forty, which are more than users
/// need.
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0,
];

/// Reconciles by controller.
#[derive(Debug)]
pub struct Reconciles {
    total: Counters,
    errors: Counters,
    time: Family<Labels, Histogram>,
}

/// The reconciles of one controller.
#[derive(Clone, Debug)]
pub struct OfController {
    success: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    time: Histogram,
}

impl Reconciles {
    /// Registers the metrics. It must be called once per process.
    pub fn new(metrics: &Metrics) -> Self {
        let reconciles = Self {
            total: Counters::default(),
            errors: Counters::default(),
            time: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        };
        metrics.register(
            "controller_runtime_reconcile",
            "Total number of reconciliations per controller",
            &reconciles.total,
        );
        metrics.register(
            "controller_runtime_reconcile_errors",
            "Total number of reconciliation errors per controller",
            &reconciles.errors,
        );
        metrics.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            &reconciles.time,
        );
        reconciles
    }

    /// The metrics of a controller, with every result at zero.
    pub fn of(&self, controller: &str) -> OfController {
        let name = ("controller", controller.to_owned());
        let total = |result: &str| {
            let labels = vec![name.clone(), ("result", result.to_owned())];
            self.total.get_or_create_owned(&labels)
        };
        let labels = vec![name.clone()];
        OfController {
            success: total("success"),
            requeue_after: total("requeue_after"),
            error: total("error"),
            errors: self.errors.get_or_create_owned(&labels),
            time: self.time.get_or_create_owned(&labels),
        }
    }
}

impl OfController {
    /// Runs a reconcile, counts it, and measures how long it takes.
    pub async fn count<E>(
        &self,
        reconcile: impl Future<Output = Result<Action, E>>,
    ) -> Result<Action, E> {
        let began = Instant::now();
        let ended = reconcile.await;
        self.time.observe(began.elapsed().as_secs_f64());
        match &ended {
            Ok(action) if *action == Action::await_change() => self.success.inc(),
            Ok(_) => self.requeue_after.inc(),
            Err(_) => {
                self.errors.inc();
                self.error.inc()
            }
        };
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_dashboard_tells_reconciles_that_failed_from_those_that_wait() {
        let metrics = Metrics::new();
        let reconciles = Reconciles::new(&metrics).of("managed/thing");
        let later = Action::requeue(Duration::from_secs(1));
        for ended in [
            Ok(Action::await_change()),
            Ok(later.clone()),
            Ok(later),
            Err("no"),
        ] {
            assert_eq!(reconciles.count(async { ended.clone() }).await, ended);
        }
        let text = metrics.prometheus_text();
        for sample in [
            "reconcile_total{controller=\"managed/thing\",result=\"success\"} 1",
            "reconcile_total{controller=\"managed/thing\",result=\"requeue_after\"} 2",
            "reconcile_total{controller=\"managed/thing\",result=\"error\"} 1",
            "reconcile_errors_total{controller=\"managed/thing\"} 1",
            "reconcile_time_seconds_count{controller=\"managed/thing\"} 4",
        ] {
            let sample = format!("controller_runtime_{sample}");
            assert!(text.lines().any(|l| l == sample), "{sample} in\n{text}");
        }
    }
}
