//! Metrics and probes of the broker, by HTTP.

use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use listening::metrics::{Open, Outcomes, PATH, count, encoded};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

/// The bounds of the histograms in seconds.
const SECONDS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0, 10.0];

/// The metrics of a broker.
pub(super) struct Metrics {
    sessions: Gauge,
    logins: Outcomes,
    connections: Outcomes,
    audit: Histogram,
    is_audit_written: Gauge,
    registry: Registry,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("gpu_bastion");
        let (sessions, logins, connections) =
            (Gauge::default(), Outcomes::default(), Outcomes::default());
        let audit = Histogram::new(SECONDS);
        registry.register("sessions", "Sessions that are open", sessions.clone());
        registry.register("logins", "Logins, by result", logins.clone());
        registry.register(
            "connections",
            "Connections to workspaces, by result",
            connections.clone(),
        );
        registry.register("audit_seconds", "Until an event is on disk", audit.clone());
        let is_audit_written = Gauge::default();
        is_audit_written.set(1);
        registry.register(
            "audit_writable",
            "Whether the last event could be written",
            is_audit_written.clone(),
        );
        Self {
            sessions,
            logins,
            connections,
            audit,
            is_audit_written,
            registry,
        }
    }

    /// Counts a login.
    pub(super) fn login(&self, result: &str) {
        count(&self.logins, result);
    }

    /// Counts a session until the value is dropped.
    pub(super) fn session(&self) -> Open {
        Open::new(&self.sessions)
    }

    /// Counts a connection to a workspace.
    pub(super) fn connection(&self, result: &str) {
        count(&self.connections, result);
    }

    /// Measures a write of the audit log.
    pub(super) fn audit(&self, began: Instant, is_written: bool) {
        self.audit.observe(began.elapsed().as_secs_f64());
        self.is_audit_written.set(i64::from(is_written));
    }

    /// Whether the last event of the audit log could be written.
    pub(super) fn is_audit_written(&self) -> bool {
        self.is_audit_written.get() == 1
    }

    /// A broker whose audit log cannot be written refuses everything, so it is not ready.
    fn answer(&self, path: &str) -> (StatusCode, String) {
        match path {
            PATH => encoded(&self.registry),
            "/healthz" => (StatusCode::OK, "alive\n".to_owned()),
            "/readyz" if self.is_audit_written() => (StatusCode::OK, "ready\n".to_owned()),
            "/readyz" => {
                let why = "the audit log cannot be written\n".to_owned();
                (StatusCode::SERVICE_UNAVAILABLE, why)
            }
            _ => (StatusCode::NOT_FOUND, "there is nothing here\n".to_owned()),
        }
    }
}

/// Answers until the broker ends.
pub(super) async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    listening::metrics::serve(listener, move |path| metrics.answer(path)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_cannot_write_its_log_is_alive_and_not_ready() {
        let metrics = Metrics::new();
        assert_eq!(metrics.answer("/readyz").0, StatusCode::OK);
        metrics.audit(Instant::now(), false);
        assert_eq!(metrics.answer("/readyz").0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(metrics.answer("/healthz").0, StatusCode::OK);
        metrics.audit(Instant::now(), true);
        assert_eq!(metrics.answer("/readyz").0, StatusCode::OK);
    }

    #[test]
    fn alerts_ask_for_metrics_that_there_are() {
        const ALERTS: &str = include_str!("../../../docs/monitoring/bastion-alerts.yaml");
        let metrics = Metrics::new();
        metrics.login("opened");
        metrics.connection("opened");
        metrics.audit(Instant::now(), true);
        let there = metrics.answer(PATH).1;
        let words = ALERTS.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let asked: Vec<&str> = words
            .filter(|word| word.starts_with("gpu_bastion_"))
            .collect();
        assert!(asked.len() >= 4, "{asked:?}");
        for metric in asked {
            let begins = |line: &str| line.starts_with(metric);
            assert!(there.lines().any(begins), "{metric}: {there}");
        }
    }

    #[test]
    fn sessions_and_connections_are_counted() {
        let metrics = Metrics::new();
        let open = metrics.session();
        drop(metrics.session());
        metrics.login("opened");
        metrics.connection("NotRunning");
        let text = metrics.answer(PATH).1;
        for line in [
            "gpu_bastion_sessions 1",
            "gpu_bastion_logins_total{result=\"opened\"} 1",
            "gpu_bastion_connections_total{result=\"NotRunning\"} 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        drop(open);
    }
}
