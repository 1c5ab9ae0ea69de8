//! Accepts connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tracing::field::display;
use tracing::warn;

use crate::pace::Pace;

/// The time before the next attempt when the process has no free file descriptor. The system does
/// not report when one becomes free.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(50);

/// Accepts the next connection. It retries after errors that pass, such as too many open files.
/// `errors` bounds how often they are logged.
pub async fn accept(listener: &TcpListener, errors: &Pace) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                if let Some(unlogged) = errors.line(Instant::now()) {
                    let address = listener.local_addr().ok().map(display);
                    warn!(%error, address, unlogged, "cannot accept a connection");
                }
                tokio::time::sleep(OUT_OF_SOCKETS).await;
            }
        }
    }
}
