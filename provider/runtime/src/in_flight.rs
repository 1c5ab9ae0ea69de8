//! Limits how many requests wait for an answer of the API server at once.
//!
//! kube's client speaks HTTP/1.1, so each request that waits for its answer has a connection of its own.
//! The client keeps a connection until the API server closes it, which is after 90 idle seconds. When a
//! thousand pools were made on a busy machine, 300 reconciles wrote at once: 320 connections with 70 KiB
//! of buffers each. More requests at once do not make a busy API server faster.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower_layer::Layer;
use tower_service::Service;

/// The most requests that wait for an answer at once.
const AT_ONCE: usize = 32;
/// The longest time that a request waits for its turn. Then it is sent without one: requests that the
/// API server never answers must not keep the others from it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The limit of one client. It is a layer for kube's `ClientBuilder`.
#[derive(Clone, Debug)]
pub struct InFlight {
    turns: Arc<Semaphore>,
    patience: Duration,
}

impl InFlight {
    fn new(at_once: usize, patience: Duration) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(at_once)),
            patience,
        }
    }
}

impl Default for InFlight {
    fn default() -> Self {
        Self::new(AT_ONCE, PATIENCE)
    }
}

impl<S> Layer<S> for InFlight {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Limited {
            inner,
            limit: self.clone(),
        }
    }
}

/// A client's stack that limits its requests.
#[derive(Clone, Debug)]
pub struct Limited<S> {
    inner: S,
    limit: InFlight,
}

impl<S, R> Service<R> for Limited<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let InFlight { turns, patience } = self.limit.clone();
        // Nothing is sent before the answer is awaited.
        let answer = self.inner.call(request);
        Box::pin(async move {
            // The turn ends with the head of the answer, so a watch has none while it lasts.
            let turn = timeout(patience, turns.acquire_owned()).await;
            let answer = answer.await;
            drop(turn);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    const FOR_EVER: Duration = Duration::from_hours(1);

    /// An API server that answers a request with the number of those that wait then. It does not answer
    /// those that it is told not to.
    #[derive(Clone, Default)]
    struct Busy(Arc<AtomicUsize>);

    impl Service<bool> for Busy {
        type Response = usize;
        type Error = Infallible;
        type Future = BoxFuture<'static, Result<usize, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, is_answered: bool) -> Self::Future {
            let waiting = self.0.clone();
            Box::pin(async move {
                let now = waiting.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::task::yield_now().await;
                if !is_answered {
                    pending::<()>().await;
                }
                waiting.fetch_sub(1, Ordering::SeqCst);
                Ok(now)
            })
        }
    }

    #[tokio::test]
    async fn a_thousand_writes_at_once_open_no_thousand_connections() {
        let mut client = InFlight::new(3, FOR_EVER).layer(Busy::default());
        let answers = join_all((0..1000).map(|_| client.call(true))).await;
        let most = answers.into_iter().map(Result::unwrap).max();
        assert_eq!(most, Some(3));
    }

    #[tokio::test]
    async fn requests_that_are_never_answered_keep_no_other_one_from_the_api_server() {
        let mut client = InFlight::new(3, Duration::from_millis(10)).layer(Busy::default());
        for _ in 0..3 {
            tokio::spawn(client.call(false));
        }
        tokio::task::yield_now().await;
        assert_eq!(client.call(true).await, Ok(4));
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_makes_room() {
        let mut client = InFlight::new(1, FOR_EVER).layer(Busy::default());
        let given_up = timeout(Duration::ZERO, client.call(false)).await;
        assert!(given_up.is_err());
        assert!(client.call(true).await.is_ok());
    }
}
