//! HTTP/1 for metrics and probes. Nobody logs in here, so every connection counts until it is closed:
//! each gets one answer within a limited time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, warn};

use crate::accept::accept;
use crate::pace::Pace;
use crate::room::{Place, Room};

/// The bounds of a port.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The largest number of connections.
    pub connections: usize,
    /// The longest time until a request has arrived.
    pub request: Duration,
    /// The longest time of a connection.
    pub connection: Duration,
}

impl Default for Bounds {
    /// Prometheus and the kubelet have a connection each. Prometheus waits 10 seconds by default.
    fn default() -> Self {
        Self {
            connections: 64,
            request: Duration::from_secs(10),
            connection: Duration::from_secs(20),
        }
    }
}

/// Answers requests until the process ends.
pub async fn serve<A>(listener: TcpListener, bounds: Bounds, answer: A)
where
    A: Fn(&Request<Incoming>) -> Response<String> + Clone + Send + Sync + 'static,
{
    let room = Room::new(bounds.connections);
    let (errors, crowded) = (Pace::default(), Pace::default());
    loop {
        let (stream, peer) = accept(&listener, &errors).await;
        let (place, closed) = room.admit(peer.ip()).await;
        if let Some(closed) = closed
            && let Some(unlogged) = crowded.line(Instant::now())
        {
            let most = bounds.connections;
            warn!(%closed, most, unlogged, "closed a connection: there are too many");
        }
        let answer = answer.clone();
        tokio::spawn(answer_one(stream, peer, place, bounds, answer));
    }
}

async fn answer_one<A>(
    stream: TcpStream,
    peer: SocketAddr,
    mut place: Place,
    bounds: Bounds,
    answer: A,
) where
    A: Fn(&Request<Incoming>) -> Response<String>,
{
    let asked = place.asked();
    let service = service_fn(|request| {
        asked.note();
        let response = answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        // An idle connection would keep its place.
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.request)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = tokio::time::timeout(bounds.connection, connection) => match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%peer, %error, "a connection failed"),
            Err(_) => debug!(%peer, "a client did not take its answer"),
        },
        () = place.claimed() => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::{sleep, timeout};

    use super::*;

    const BOUNDS: Bounds = Bounds {
        connections: 4,
        request: Duration::from_millis(500),
        connection: Duration::from_secs(1),
    };
    const PATIENCE: Duration = Duration::from_secs(20);
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    async fn served(text: &str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let text = text.to_owned();
        tokio::spawn(serve(listener, BOUNDS, move |_| {
            Response::new(text.clone())
        }));
        address
    }

    /// Everything that the server sends until it closes the connection.
    async fn rest(stream: &mut TcpStream) -> String {
        let mut read = Vec::new();
        let end = timeout(PATIENCE, stream.read_to_end(&mut read)).await;
        // A connection that is reset has an end, too.
        let _ = end.unwrap();
        String::from_utf8_lossy(&read).into_owned()
    }

    #[tokio::test]
    async fn an_answered_client_keeps_no_connection_open() {
        let address = served("here").await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        let before = Instant::now();
        assert!(rest(&mut stream).await.ends_with("here"));
        assert!(before.elapsed() < BOUNDS.request);
    }

    #[tokio::test]
    async fn a_request_that_comes_byte_by_byte_is_given_up() {
        let address = served("here").await;
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut read, mut write) = stream.into_split();
        let before = Instant::now();
        tokio::spawn(async move {
            for byte in b"GET /".iter().chain(std::iter::repeat(&b'x')) {
                if write.write_all(&[*byte]).await.is_err() {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        let end = timeout(PATIENCE, read.read_to_end(&mut Vec::new())).await;
        let _ = end.unwrap();
        let took = before.elapsed();
        assert!(
            took >= BOUNDS.request && took < BOUNDS.request * 6,
            "{took:?}"
        );
    }

    #[tokio::test]
    async fn a_client_that_takes_no_answer_is_given_up() {
        let address = served(&"x".repeat(64 * 1024 * 1024)).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        sleep(BOUNDS.connection * 3).await;
        assert!(rest(&mut stream).await.len() < 64 * 1024 * 1024);
    }

    #[tokio::test]
    async fn clients_that_ask_nothing_keep_nobody_out() {
        let address = served("here").await;
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(TcpStream::connect(address).await.unwrap());
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(REQUEST).await.unwrap();
            assert!(rest(&mut stream).await.ends_with("here"));
        }
    }
}
