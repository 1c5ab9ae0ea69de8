//! The connections of a socket in the pod.

use std::io;

use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

/// Serves each connection by itself until the broker ends. `what` names the socket in the broker's own log.
pub(super) async fn serve_each<F>(
    listener: UnixListener,
    what: &'static str,
    serve: impl Fn(UnixStream) -> F,
) where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let served = serve(stream);
                tokio::spawn(async move {
                    if let Err(error) = served.await {
                        warn!(%error, what, "a connection failed");
                    }
                });
            }
            Err(error) => warn!(%error, what, "cannot accept a connection"),
        }
    }
}
