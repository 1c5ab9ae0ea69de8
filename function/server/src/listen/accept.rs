//! Accepts connections. Handshakes run concurrently, so a slow client or one with a wrong
//! certificate does not delay other clients.
//!
//! A handshake is finished when the client has shown its certificate and begun HTTP/2. Until then a
//! connection needs one of a few places, and has little time. Afterwards it is counted no more.

use std::io;
use std::sync::Arc;

use futures::Stream;
use futures::stream::poll_fn;
use listening::room::Room;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tracing::debug;

use crate::listen::address::Listener;
use crate::listen::connection::{self, Connection};
use crate::listen::refusals::Refusals;
use crate::listen::unfinished::Unfinished;

/// The largest number of unfinished handshakes. Container runtimes often allow a process 1024 open
/// files.
const UNFINISHED: usize = 256;
/// The largest number of accepted connections that wait for the server.
const WAITING: usize = 64;

type Newest = watch::Receiver<Arc<ServerConfig>>;

/// The connections whose client has shown its certificate. When the stream is dropped, the listener
/// is closed and running handshakes are cancelled.
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
    let refusals = Arc::new(Refusals::default());
    loop {
        let (stream, peer) = listener.accept().await;
        // Responses are written at once, so Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, %peer, "the connection ended before it began");
            continue;
        }
        let (place, closed) = room.admit(peer.ip()).await;
        if let Some(closed) = closed {
            refusals.crowded(closed, UNFINISHED);
        }
        let acceptor = certificates.map(|newest| TlsAcceptor::from(Arc::clone(&newest.borrow())));
        let (ready, refusals) = (ready.clone(), Arc::clone(&refusals));
        tokio::spawn(async move {
            let mut unfinished = Unfinished::begin(place, peer, Arc::clone(&refusals));
            let shaken = tokio::select! {
                shaken = handshake(acceptor, stream) => shaken,
                () = unfinished.over() => return,
                () = ready.closed() => return,
            };
            match shaken {
                // Sending fails when the server has stopped. The connection is then closed.
                Ok(stream) => drop(ready.send(Connection::new(stream, unfinished)).await),
                Err(error) => refusals.refused(peer, &error),
            }
        });
    }
}

async fn handshake(
    acceptor: Option<TlsAcceptor>,
    stream: TcpStream,
) -> io::Result<connection::Stream> {
    Ok(match acceptor {
        Some(acceptor) => Either::Right(Box::new(acceptor.accept(stream).await?)),
        None => Either::Left(stream),
    })
}
