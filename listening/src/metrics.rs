//! Metrics in `OpenMetrics` 1.0, and probes.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::http::{Bounds, serve as answered};

/// The path of the metrics.
pub const PATH: &str = "/metrics";
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// What became of something, in a word.
#[derive(EncodeLabelSet, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    result: String,
}

/// How often something happened, by its outcome.
pub type Outcomes = Family<Outcome, Counter>;

/// Counts an outcome.
pub fn count(outcomes: &Outcomes, result: &str) {
    let outcome = Outcome {
        result: result.to_owned(),
    };
    outcomes.get_or_create(&outcome).inc();
}

/// Something that a gauge counts as long as the value lives.
pub struct Open(Gauge);

impl Open {
    /// Counts one more.
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The metrics of a registry.
pub fn encoded(registry: &Registry) -> (StatusCode, String) {
    let mut metrics = String::new();
    match text::encode(&mut metrics, registry) {
        Ok(()) => (StatusCode::OK, metrics),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Answers requests by their paths until the process ends.
pub async fn serve<A>(listener: TcpListener, answer: A)
where
    A: Fn(&str) -> (StatusCode, String) + Clone + Send + Sync + 'static,
{
    let respond = move |request: &Request<_>| {
        let path = request.uri().path();
        let (status, text) = answer(path);
        let mut response = Response::new(text);
        *response.status_mut() = status;
        if path == PATH {
            response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
        }
        response
    };
    answered(listener, Bounds::default(), respond).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_counts_as_long_as_it_lives() {
        let gauge = Gauge::<i64>::default();
        let (one, two) = (Open::new(&gauge), Open::new(&gauge));
        assert_eq!(gauge.get(), 2);
        drop(one);
        assert_eq!(gauge.get(), 1);
        drop(two);
        assert_eq!(gauge.get(), 0);
    }

    #[test]
    fn outcomes_are_counted_each_by_itself() {
        let mut registry = Registry::default();
        let outcomes = Outcomes::default();
        registry.register("logins", "Logins", outcomes.clone());
        count(&outcomes, "opened");
        count(&outcomes, "opened");
        count(&outcomes, "refused");
        let (status, text) = encoded(&registry);
        assert_eq!(status, StatusCode::OK);
        assert!(
            text.contains("logins_total{result=\"opened\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("logins_total{result=\"refused\"} 1\n"),
            "{text}"
        );
    }
}
