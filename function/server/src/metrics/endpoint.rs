//! Serves `/metrics` over HTTP.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use listening::http::Bounds;

use crate::listen::address::Listener;
use crate::metrics::calls::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const PROMETHEUS_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Serves the metrics until the process ends.
pub async fn serve(listener: Listener, metrics: Arc<Metrics>) {
    let answer = move |request: &Request<_>| answer(request, &metrics);
    listening::http::serve(listener.into_socket(), Bounds::default(), answer).await;
}

/// The response to a request. Clients that accept `OpenMetrics`, such as Prometheus, get it. All
/// others get Prometheus' text format.
fn answer<B>(request: &Request<B>, metrics: &Metrics) -> Response<String> {
    if request.uri().path() != "/metrics" {
        let mut response = Response::new("see /metrics\n".to_owned());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let accepted = request.headers().get_all(ACCEPT).iter();
    let open = accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains(OPEN_METRICS));
    let (text, content_type) = if open {
        (metrics.open_metrics(), OPEN_METRICS_TYPE)
    } else {
        (metrics.prometheus_text(), PROMETHEUS_TYPE)
    };
    let mut response = Response::new(text);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
