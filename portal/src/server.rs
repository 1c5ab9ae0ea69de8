//! Serves HTTP over TLS.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use listening::accept::accept;
use listening::pace::Pace;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, info};

/// How long a client may take until TLS is established, and for the headers of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the portal serves after it is told to end. Kubernetes tells the proxies of the Service at the same
/// moment, and a busy node takes some seconds to follow. Pods have 30 seconds.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long requests may take after that.
const LAST: Duration = Duration::from_secs(2);

/// How many clients may be on their way to TLS. A new client takes the place of the one that is on its way for
/// longest: an honest one is there after some milliseconds.
const ARRIVING: usize = 1024;
/// How many connections there may be. Each costs some 15 KiB.
const CONNECTIONS: usize = 6144;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}: {1}")]
    Pem(String, rustls_pki_types::pem::Error),
    #[error("the certificate and its key: {0}")]
    Tls(#[from] rustls::Error),
}

/// TLS with a certificate chain and its key, from files of PEM.
pub(crate) fn tls(certificates: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let wrong = |path: &Path, error| Error::Pem(path.display().to_string(), error);
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificates, error))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error))?;
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves connections until the process is told to end, and a while longer. Connections that are still open then
/// end after their request; streams of changes go on until the process ends.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    router: Router,
) -> std::io::Result<()> {
    let mut told = signal(SignalKind::terminate())?;
    let (ending, _) = watch::channel(());
    // `accept_all` closes each connection whose TLS handshake is not finished when its future is dropped. So the
    // portal keeps one future until it ends.
    let mut accepting = pin!(accept_all(&listener, &tls, &router, &ending));
    tokio::select! {
        () = accepting.as_mut() => return Ok(()),
        _ = told.recv() => info!("told to end, and serves for {} s more", FAREWELL.as_secs()),
    }
    // A connection that is told to end before its first request is closed without an answer. So connections are
    // told when no new ones come any more.
    let _ = tokio::time::timeout(FAREWELL, accepting.as_mut()).await;
    ending.send_replace(());
    let _ = tokio::time::timeout(LAST, ending.closed()).await;
    Ok(())
}

async fn accept_all(
    listener: &TcpListener,
    tls: &TlsAcceptor,
    router: &Router,
    ending: &watch::Sender<()>,
) {
    let errors = Pace::default();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut arriving = VecDeque::with_capacity(ARRIVING);
    loop {
        let (stream, peer) = accept(listener, &errors).await;
        if arriving.len() == ARRIVING {
            // Who has arrived already does not notice.
            arriving.pop_front();
        }
        let (stays, gives_way) = oneshot::channel::<Infallible>();
        arriving.push_back(stays);
        let (tls, router, ending) = (tls.clone(), router.clone(), ending.subscribe());
        let places = Arc::clone(&places);
        tokio::spawn(async move {
            let ended = async {
                let stream = established(stream, &tls, gives_way).await?;
                let full = || "there are too many connections".to_owned();
                let _place = places.try_acquire_owned().map_err(|_| full())?;
                connection(stream, router, ending).await
            };
            if let Err(error) = ended.await {
                debug!(%peer, error, "a connection ended");
            }
        });
    }
}

/// The connection of a client with TLS, unless another client takes its place before.
async fn established(
    stream: TcpStream,
    tls: &TlsAcceptor,
    gives_way: oneshot::Receiver<Infallible>,
) -> Result<TlsStream<TcpStream>, String> {
    // A message of the stream of changes is smaller than a packet, and nobody waits for more.
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    tokio::select! {
        arrived = tokio::time::timeout(PATIENCE, tls.accept(stream)) => arrived
            .map_err(|_| "TLS took too long".to_owned())?
            .map_err(|error| error.to_string()),
        _ = gives_way => Err("TLS took too long for the number of clients".to_owned()),
    }
}

async fn connection(
    stream: TlsStream<TcpStream>,
    router: Router,
    mut ending: watch::Receiver<()>,
) -> Result<(), String> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(32)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(PATIENCE);
    let service = TowerToHyperService::new(router);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        _ = ending.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    ended.map_err(|error| error.to_string())
}
