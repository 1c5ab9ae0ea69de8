//! Metrics and probes, by HTTP on a port of their own.

use std::sync::Arc;

use http::StatusCode;
use listening::metrics::{Open, Outcomes, PATH, count, encoded};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

/// A request by the route that answered it.
#[derive(EncodeLabelSet, Clone, Debug, PartialEq, Eq, Hash)]
struct Answered {
    route: String,
    code: u16,
}

/// The metrics of a portal.
pub(crate) struct Metrics {
    streams: Gauge,
    ends: Outcomes,
    logins: Outcomes,
    requests: Family<Answered, Counter>,
    registry: Registry,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("gpu_portal");
        let (streams, ends) = (Gauge::default(), Outcomes::default());
        let (logins, requests) = (Outcomes::default(), Family::default());
        registry.register(
            "streams",
            "Streams of changes that are open",
            streams.clone(),
        );
        registry.register(
            "stream_ends",
            "Streams that the portal ended, by reason",
            ends.clone(),
        );
        registry.register(
            "logins",
            "Answers of the provider of identities",
            logins.clone(),
        );
        registry.register("requests", "Requests by route and status", requests.clone());
        Self {
            streams,
            ends,
            logins,
            requests,
            registry,
        }
    }

    /// Counts a stream until the value is dropped.
    pub(crate) fn stream(&self) -> Open {
        Open::new(&self.streams)
    }

    /// Counts a stream that the portal ends.
    pub(crate) fn ends(&self, why: &str) {
        count(&self.ends, why);
    }

    /// Counts somebody who comes back from the provider of identities.
    pub(crate) fn login(&self, result: &str) {
        count(&self.logins, result);
    }

    /// Counts a request. Paths that no route has are counted together, because clients choose them.
    pub(crate) fn answered(&self, route: Option<&str>, status: StatusCode) {
        let answered = Answered {
            route: route.unwrap_or("other").to_owned(),
            code: status.as_u16(),
        };
        self.requests.get_or_create(&answered).inc();
    }

    fn answer(&self, path: &str) -> (StatusCode, String) {
        match path {
            PATH => encoded(&self.registry),
            // The port is open when the claims, the users and the sessions are known.
            "/healthz" | "/readyz" => (StatusCode::OK, "ok\n".to_owned()),
            _ => (StatusCode::NOT_FOUND, "not found\n".to_owned()),
        }
    }
}

/// Serves metrics and probes until the process ends.
pub(crate) async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    listening::metrics::serve(listener, move |path| metrics.answer(path)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_counts_as_long_as_it_is_open() {
        let metrics = Metrics::new();
        let streams = |count: u32| {
            let (_, text) = metrics.answer("/metrics");
            text.contains(&format!("gpu_portal_streams {count}\n"))
        };
        assert!(streams(0));
        let (one, two) = (metrics.stream(), metrics.stream());
        assert!(streams(2));
        drop(one);
        assert!(streams(1));
        drop(two);
        assert!(streams(0));
    }

    #[test]
    fn paths_that_clients_make_up_are_one_row() {
        let metrics = Metrics::new();
        metrics.answered(None, StatusCode::NOT_FOUND);
        metrics.answered(None, StatusCode::NOT_FOUND);
        metrics.answered(Some("/login"), StatusCode::SEE_OTHER);
        let (_, text) = metrics.answer("/metrics");
        assert!(text.contains("gpu_portal_requests_total{route=\"other\",code=\"404\"} 2\n"));
        assert!(text.contains("gpu_portal_requests_total{route=\"/login\",code=\"303\"} 1\n"));
    }
}
