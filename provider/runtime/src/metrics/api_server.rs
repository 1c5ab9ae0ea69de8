//! Metrics of requests to the API server, as client-go has them.

use std::fmt::Display;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::{Counters, Metrics};

/// Counts the requests of a client. A watch counts once, when it starts.
#[derive(Clone, Debug)]
pub struct Requests(Counters);

impl Requests {
    /// Registers the counters. It must be called once per process. The result is a layer for kube's
    /// `ClientBuilder`.
    pub fn new(metrics: &Metrics) -> Self {
        let counters = Counters::default();
        metrics.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code and method",
            &counters,
        );
        Self(counters)
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Counting {
            inner,
            requests: self.clone(),
        }
    }
}

/// A client's stack that counts requests.
#[derive(Clone, Debug)]
pub struct Counting<S> {
    inner: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Counting<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Display,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let counters = self.requests.0.clone();
        let method = request.method().to_string();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            // client-go uses this code for a request without an answer.
            let code = answer
                .as_ref()
                .map_or_else(|_| "<error>".to_owned(), |a| a.status().as_str().to_owned());
            let labels = vec![("code", code), ("method", method)];
            counters.get_or_create_owned(&labels).inc();
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use kube::Api;
    use kube::client::ClientBuilder;

    use super::*;
    use crate::testing::Thing;
    use memory_api_server::ApiServer;

    #[tokio::test]
    async fn a_dashboard_shows_what_the_api_server_refused() {
        let metrics = Metrics::new();
        let layer = Requests::new(&metrics);
        let stack = ClientBuilder::new(ApiServer::default(), "default");
        let client = stack.with_layer(&layer).build();
        let things: Api<Thing> = Api::namespaced(client, "default");
        assert!(things.get_opt("absent").await.unwrap().is_none());
        let sample = "rest_client_requests_total{code=\"404\",method=\"GET\"} 1";
        let text = metrics.prometheus_text();
        assert!(text.lines().any(|l| l == sample), "{text}");
    }
}
