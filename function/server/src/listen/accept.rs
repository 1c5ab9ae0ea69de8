//! Accepts connections. Handshakes run concurrently, so a slow client or one with a wrong
//! certificate does not delay other clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::stream::poll_fn;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::listen::address::Listener;
use crate::listen::connection::Connection;

/// Longest time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The largest number of accepted connections that wait for the server.
const WAITING: usize = 64;

/// The connections that are ready for HTTP/2. When the stream is dropped, the listener is closed
/// and running handshakes are cancelled.
pub fn connections(
    listener: Listener,
    certificates: Option<watch::Receiver<Arc<ServerConfig>>>,
) -> impl Stream<Item = io::Result<Connection>> {
    let (ready, mut connections) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        tokio::select! {
            () = accept(&listener, certificates.as_ref(), &ready) => {}
            () = ready.closed() => {}
        }
    });
    poll_fn(move |cx| connections.poll_recv(cx).map(|next| next.map(Ok)))
}

async fn accept(
    listener: &Listener,
    certificates: Option<&watch::Receiver<Arc<ServerConfig>>>,
    ready: &mpsc::Sender<Connection>,
) {
    loop {
        let (stream, peer) = listener.accept().await;
        // Responses are written at once, so Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, %peer, "the connection ended before it began");
            continue;
        }
        let Some(certificates) = certificates else {
            if ready.send(Connection::Plain(stream)).await.is_err() {
                return;
            }
            continue;
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&certificates.borrow()));
        let ready = ready.clone();
        tokio::spawn(async move {
            tokio::select! {
                shaken = handshake(acceptor, stream, peer) => {
                    if let Some(connection) = shaken {
                        // Sending fails when the server has stopped. The connection is then closed.
                        let _ = ready.send(connection).await;
                    }
                }
                () = ready.closed() => {}
            }
        });
    }
}

async fn handshake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<Connection> {
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(Connection::Tls(Box::new(stream))),
        Ok(Err(error)) if is_gone(&error) => {
            debug!(%peer, %error, "the client left during the TLS handshake");
            None
        }
        Ok(Err(error)) => {
            warn!(%peer, %error, "refused a client in the TLS handshake");
            None
        }
        Err(_) => {
            warn!(%peer, seconds = HANDSHAKE.as_secs(), "gave a TLS handshake up");
            None
        }
    }
}

/// Whether the client has closed the connection. Probes of an open port do that.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}
