//! Counters of calls, with the names, labels and texts of grpc-prometheus, which Go's SDK uses. The
//! same dashboards work for both.
//!
//! As in grpc-prometheus, only unary calls are counted, and every method exists from the start with
//! value 0.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tonic::{Code, Status};
use tower_service::Service;

use crate::grpc::endpoint::{Package, V1, V1Beta1};

/// The names of gRPC's status codes in Go, by number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
/// The prefix of the counters' names.
const COUNTED: &str = "grpc_";
const UNARY: &str = "unary";
const METHODS: [(&str, &str, &str); 6] = [
    (UNARY, V1::SERVICE, "RunFunction"),
    (UNARY, V1Beta1::SERVICE, "RunFunction"),
    (UNARY, "grpc.health.v1.Health", "Check"),
    ("server_stream", "grpc.health.v1.Health", "Watch"),
    (
        "bidi_stream",
        "grpc.reflection.v1.ServerReflection",
        "ServerReflectionInfo",
    ),
    (
        "bidi_stream",
        "grpc.reflection.v1alpha.ServerReflection",
        "ServerReflectionInfo",
    ),
];

type Labels = Vec<(&'static str, &'static str)>;
type Counters = Family<Labels, Counter>;

/// All counters of the server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    unary: Vec<Method>,
}

/// The counters of one method.
#[derive(Debug)]
struct Method {
    path: String,
    started: Counter,
    received: Counter,
    sent: Counter,
    handled: Vec<Counter>,
}

impl Metrics {
    /// Creates the counters with value 0, and registers the collectors of the function.
    pub fn new(collectors: Vec<Box<dyn Collector>>) -> Self {
        let mut registry = Registry::default();
        for collector in collectors {
            registry.register_collector(collector);
        }
        let mut family = |name: &str, help: &str| {
            let counters = Counters::default();
            registry.register(name, help, counters.clone());
            counters
        };
        let started = family(
            "grpc_server_started",
            "Total number of RPCs started on the server",
        );
        let handled = family(
            "grpc_server_handled",
            "Total number of RPCs completed on the server, regardless of success or failure",
        );
        let received = family(
            "grpc_server_msg_received",
            "Total number of RPC stream messages received on the server",
        );
        let sent = family(
            "grpc_server_msg_sent",
            "Total number of gRPC stream messages sent by the server",
        );
        let methods = METHODS.map(|(kind, service, method)| {
            let labels = vec![
                ("grpc_type", kind),
                ("grpc_service", service),
                ("grpc_method", method),
            ];
            let with_code = |code| [labels.as_slice(), &[("grpc_code", code)]].concat();
            let counters = Method {
                path: format!("/{service}/{method}"),
                started: started.get_or_create(&labels).clone(),
                received: received.get_or_create(&labels).clone(),
                sent: sent.get_or_create(&labels).clone(),
                handled: CODES
                    .iter()
                    .map(|code| handled.get_or_create(&with_code(code)).clone())
                    .collect(),
            };
            (kind == UNARY).then_some(counters)
        });
        Self {
            registry,
            unary: methods.into_iter().flatten().collect(),
        }
    }

    /// The metrics in the format `OpenMetrics` 1.0.
    pub fn open_metrics(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    /// The metrics in Prometheus' text format. In this format the name of a counter has the suffix
    /// `_total` in its description too.
    pub fn prometheus_text(&self) -> String {
        let text = self.open_metrics();
        let lines = text.lines().filter(|line| *line != "# EOF").map(|line| {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some(what), Some(name), Some(rest)) if name.starts_with(COUNTED) => {
                    format!("# {what} {name}_total {rest}\n")
                }
                _ => format!("{line}\n"),
            }
        });
        lines.collect()
    }

    fn start(self: &Arc<Self>, path: &str) -> Option<Running> {
        let method = self.unary.iter().position(|m| m.path == path)?;
        self.unary[method].started.inc();
        self.unary[method].received.inc();
        Some(Running {
            metrics: Arc::clone(self),
            method,
            code: Code::Cancelled,
        })
    }
}

/// A running call. If it is dropped without an end, the client has cancelled the call.
struct Running {
    metrics: Arc<Metrics>,
    method: usize,
    code: Code,
}

impl Running {
    fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let method = &self.metrics.unary[self.method];
        if let Some(counter) = method.handled.get(self.code as usize) {
            counter.inc();
        }
        if self.code == Code::Ok {
            method.sent.inc();
        }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    metrics: Arc<Metrics>,
}

impl<S> Counted<S> {
    /// Counts the calls of `inner`.
    pub fn new(inner: S, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

impl<S, A, B> Service<http::Request<A>> for Counted<S>
where
    S: Service<http::Request<A>, Response = http::Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: http::Request<A>) -> Self::Future {
        let running = self.metrics.start(call.uri().path());
        let answer = self.inner.call(call);
        Box::pin(async move {
            let answer = answer.await?;
            if let Some(running) = running {
                // An error status is in the headers. Without one, the trailers have the status OK.
                let status = Status::from_header_map(answer.headers());
                running.end(status.map_or(Code::Ok, |status| status.code()));
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
