//! Metrics and probes, by HTTP on a port of their own.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use listening::http::Bounds;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// What became of something, in a word.
#[derive(EncodeLabelSet, Clone, Debug, PartialEq, Eq, Hash)]
struct Outcome {
    result: String,
}

/// A request by the route that answered it.
#[derive(EncodeLabelSet, Clone, Debug, PartialEq, Eq, Hash)]
struct Answered {
    route: String,
    code: u16,
}

/// The metrics of a portal.
pub(crate) struct Metrics {
    streams: Gauge,
    ends: Family<Outcome, Counter>,
    logins: Family<Outcome, Counter>,
    requests: Family<Answered, Counter>,
    registry: Registry,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("gpu_portal");
        let (streams, ends) = (Gauge::default(), Family::default());
        let (logins, requests) = (Family::default(), Family::default());
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
    pub(crate) fn stream(&self) -> OpenStream {
        self.streams.inc();
        OpenStream(self.streams.clone())
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
            "/metrics" => {
                let mut metrics = String::new();
                match text::encode(&mut metrics, &self.registry) {
                    Ok(()) => (StatusCode::OK, metrics),
                    Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
                }
            }
            // The port is open when the claims, the users and the sessions are known.
            "/healthz" | "/readyz" => (StatusCode::OK, "ok\n".to_owned()),
            _ => (StatusCode::NOT_FOUND, "not found\n".to_owned()),
        }
    }
}

/// A stream that is open.
pub(crate) struct OpenStream(Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn count(family: &Family<Outcome, Counter>, result: &str) {
    let outcome = Outcome {
        result: result.to_owned(),
    };
    family.get_or_create(&outcome).inc();
}

/// Serves metrics and probes until the process ends.
pub(crate) async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    listening::http::serve(listener, Bounds::default(), move |request: &Request<_>| {
        let (status, body) = metrics.answer(request.uri().path());
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let is_metrics = request.uri().path() == "/metrics" && status.is_success();
        let media = if is_metrics {
            OPEN_METRICS
        } else {
            HeaderValue::from_static("text/plain; charset=utf-8")
        };
        response.headers_mut().insert(CONTENT_TYPE, media);
        response
    })
    .await;
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
