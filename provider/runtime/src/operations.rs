//! `/healthz`, `/readyz` and `/metrics` over HTTP.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use listening::http::Bounds;
use tokio::net::TcpListener;

use crate::metrics::Metrics;
use crate::readiness::Readiness;

const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const PROMETHEUS_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The reason why the endpoints cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OperationsError {
    /// The text is not an address.
    #[error("operations address {0:?}: give host:port, for example 0.0.0.0:8080, or :8080")]
    Address(String),
    /// The system refused to listen.
    #[error("operations address {address}: {source}; choose another port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// The data behind the operations endpoints.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// The metrics that `/metrics` shows.
    pub metrics: Metrics,
    /// The state that `/readyz` shows.
    pub readiness: Readiness,
}

/// Endpoints that listen already.
#[derive(Debug)]
pub struct Endpoints {
    /// The address, with the port that the system chose for port 0.
    pub address: SocketAddr,
    listener: TcpListener,
    operations: Operations,
}

impl Operations {
    /// Listens at `address`. Without a host, as in `:8080`, it listens on every interface. If the
    /// kernel has no IPv6, only IPv4 is used.
    pub async fn bind(self, address: &str) -> Result<Endpoints, OperationsError> {
        let listener = listen(address).await?;
        let address = listener
            .local_addr()
            .map_err(|_| OperationsError::Address(address.to_owned()))?;
        Ok(Endpoints {
            address,
            listener,
            operations: self,
        })
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<String> {
        match request.uri().path() {
            "/healthz" => respond(StatusCode::OK, PLAIN, "ok\n".to_owned()),
            "/readyz" => self.ready(),
            "/metrics" => self.scrape(request),
            _ => respond(
                StatusCode::NOT_FOUND,
                PLAIN,
                "see /healthz, /readyz and /metrics\n".to_owned(),
            ),
        }
    }

    fn ready(&self) -> Response<String> {
        let missing = self.readiness.missing();
        if missing.is_empty() {
            return respond(StatusCode::OK, PLAIN, "ok\n".to_owned());
        }
        let text = format!("waiting for {}\n", missing.join(", "));
        respond(StatusCode::SERVICE_UNAVAILABLE, PLAIN, text)
    }

    /// `OpenMetrics` for clients that ask for it, as Prometheus does. For others, Prometheus' text
    /// format.
    fn scrape<B>(&self, request: &Request<B>) -> Response<String> {
        let accepted = request.headers().get_all(ACCEPT).iter();
        let open = accepted
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.contains(OPEN_METRICS));
        if open {
            respond(
                StatusCode::OK,
                OPEN_METRICS_TYPE,
                self.metrics.open_metrics(),
            )
        } else {
            let text = self.metrics.prometheus_text();
            respond(StatusCode::OK, PROMETHEUS_TYPE, text)
        }
    }
}

impl Endpoints {
    /// Answers requests until the process ends.
    pub async fn serve(self) {
        let operations = self.operations;
        let answer = move |request: &Request<_>| operations.answer(request);
        listening::http::serve(self.listener, Bounds::default(), answer).await;
    }
}

async fn listen(text: &str) -> Result<TcpListener, OperationsError> {
    let invalid = || OperationsError::Address(text.to_owned());
    let every_interface = text.strip_prefix(':').map(str::parse::<u16>).transpose();
    let Some(port) = every_interface.map_err(|_| invalid())? else {
        let address = text.parse().map_err(|_| invalid())?;
        return bind(address).await;
    };
    match bind((Ipv6Addr::UNSPECIFIED, port).into()).await {
        Err(OperationsError::Listen { source, .. })
            if source.kind() != io::ErrorKind::AddrInUse =>
        {
            bind((Ipv4Addr::UNSPECIFIED, port).into()).await
        }
        bound => bound,
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, OperationsError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| OperationsError::Listen { address, source })
}

fn respond(status: StatusCode, content_type: HeaderValue, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::metrics::calls::Calls;

    /// The status line, headers and body of the response.
    async fn get(address: SocketAddr, path: &str, accept: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn served() -> (Operations, SocketAddr) {
        let operations = Operations::default();
        let endpoints = operations.clone().bind("127.0.0.1:0").await.unwrap();
        let address = endpoints.address;
        tokio::spawn(endpoints.serve());
        (operations, address)
    }

    #[tokio::test]
    async fn a_pod_is_not_ready_before_its_watches_are_complete() {
        let (operations, address) = served().await;
        let pools = operations.readiness.wait_for("the watch of pools");
        let configs = operations.readiness.wait_for("the watch of configs");
        pools.finish();
        let answer = get(address, "/readyz", "*/*").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(
            answer.ends_with("waiting for the watch of configs\n"),
            "{answer}"
        );
        // The process is alive, so Kubernetes does not restart it meanwhile.
        let alive = get(address, "/healthz", "*/*").await;
        assert!(alive.starts_with("HTTP/1.1 200 "), "{alive}");
        configs.finish();
        let answer = get(address, "/readyz", "*/*").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    #[tokio::test]
    async fn a_task_that_died_before_it_was_ready_is_noticed() {
        let (operations, address) = served().await;
        drop(operations.readiness.wait_for("the watch of pools"));
        let answer = get(address, "/readyz", "*/*").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }

    #[tokio::test]
    async fn prometheus_gets_the_format_it_asks_for() {
        let (operations, address) = served().await;
        let calls = Calls::new(&operations.metrics, "cloud_calls", "Calls");
        calls.count("Run", "success");
        let plain = get(address, "/metrics", "text/plain").await;
        assert!(plain.contains("content-type: text/plain; version=0.0.4"));
        assert!(plain.contains("# TYPE cloud_calls_total counter\n"));
        let open = get(address, "/metrics", "application/openmetrics-text").await;
        assert!(open.contains("content-type: application/openmetrics-text; version=1.0.0"));
        assert!(open.ends_with("# EOF\n"), "{open}");
        let lost = get(address, "/", "*/*").await;
        assert!(lost.starts_with("HTTP/1.1 404 "), "{lost}");
    }

    #[tokio::test]
    async fn an_address_that_cannot_work_is_named() {
        for wrong in ["8080", ":port", ":99999", "localhost"] {
            let error = Operations::default().bind(wrong).await.unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
        let taken = Operations::default().bind(":0").await.unwrap();
        let again = format!(":{}", taken.address.port());
        let error = Operations::default().bind(&again).await.unwrap_err();
        assert!(error.to_string().contains("choose another port"), "{error}");
    }
}
