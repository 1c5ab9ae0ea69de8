//! Accepts connections. Handshakes run concurrently, so a slow client or one with a wrong
//! certificate does not delay other clients.
//!
//! A handshake is finished when the client has shown its certificate and begun HTTP/2. Until then a
//! connection needs one of a few places, and has little time. Afterwards it is counted no more.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::Stream;
use futures::stream::poll_fn;
use listening::pace::Pace;
use listening::room::Room;
use rustls::{CertificateError, ServerConfig};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::listen::address::Listener;
use crate::listen::connection::Connection;

/// Longest time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The largest number of unfinished handshakes. Container runtimes often allow a process 1024 open
/// files.
const UNFINISHED: usize = 256;
/// The largest number of accepted connections that wait for the server.
const WAITING: usize = 64;

type Newest = watch::Receiver<Arc<ServerConfig>>;

/// The connections that are ready for HTTP/2. When the stream is dropped, the listener is closed
/// and running handshakes are cancelled.
pub fn connections(
    listener: Listener,
    certificates: Option<Newest>,
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
    certificates: Option<&Newest>,
    ready: &mpsc::Sender<Connection>,
) {
    let room = Room::new(UNFINISHED);
    let log = Arc::new(Log::default());
    loop {
        let (stream, peer) = listener.accept().await;
        // Responses are written at once, so Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, %peer, "the connection ended before it began");
            continue;
        }
        let (mut place, closed) = room.admit(peer.ip()).await;
        if let Some(closed) = closed {
            log.crowded(closed);
        }
        let acceptor = certificates.map(|newest| TlsAcceptor::from(Arc::clone(&newest.borrow())));
        let (ready, log) = (ready.clone(), Arc::clone(&log));
        tokio::spawn(async move {
            let shaken = tokio::select! {
                shaken = tokio::time::timeout(HANDSHAKE, handshake(acceptor, stream)) => shaken,
                () = place.claimed() => return,
                () = ready.closed() => return,
            };
            drop(place);
            match shaken {
                // Sending fails when the server has stopped. The connection is then closed.
                Ok(Ok(connection)) => drop(ready.send(connection).await),
                Ok(Err(error)) => log.refused(peer, &error),
                Err(_) => log.gave_up(peer),
            }
        });
    }
}

async fn handshake(acceptor: Option<TlsAcceptor>, stream: TcpStream) -> io::Result<Connection> {
    let mut connection = match acceptor {
        Some(acceptor) => Connection::tls(acceptor.accept(stream).await?),
        None => Connection::plain(stream),
    };
    connection.await_preface().await?;
    Ok(connection)
}

/// The log of clients that do not get in. They decide how often that happens.
#[derive(Debug, Default)]
struct Log {
    crowded: Pace,
    refused: Pace,
    misnamed: Pace,
    gave_up: Pace,
}

impl Log {
    fn crowded(&self, closed: std::net::IpAddr) {
        if let Some(unlogged) = self.crowded.line(Instant::now()) {
            warn!(%closed, most = UNFINISHED, unlogged,
                "closed a connection: there are too many unfinished handshakes");
        }
    }

    fn refused(&self, peer: SocketAddr, error: &io::Error) {
        if is_gone(error) {
            debug!(%peer, %error, "the client left during the handshake");
        } else if let Some(names) = names_of_another(error) {
            if let Some(unlogged) = self.misnamed.line(Instant::now()) {
                warn!(%peer, names = names.join(", "), unlogged,
                    "refused a client: its certificate is not for the name of --client-name");
            }
        } else if let Some(unlogged) = self.refused.line(Instant::now()) {
            warn!(%peer, %error, unlogged, "refused a client in the handshake");
        }
    }

    fn gave_up(&self, peer: SocketAddr) {
        if let Some(unlogged) = self.gave_up.line(Instant::now()) {
            warn!(%peer, seconds = HANDSHAKE.as_secs(), unlogged, "gave a handshake up");
        }
    }
}

/// The names in the certificate of a client that was refused for them.
fn names_of_another(error: &io::Error) -> Option<&[String]> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        }) => Some(presented),
        _ => None,
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
