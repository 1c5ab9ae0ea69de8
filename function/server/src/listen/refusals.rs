//! The log of clients that do not get in. They decide how often that happens.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use listening::pace::Pace;
use rustls::CertificateError;
use tracing::{debug, warn};

/// The paces of the lines.
#[derive(Debug, Default)]
pub struct Refusals {
    crowded: Pace,
    refused: Pace,
    misnamed: Pace,
    gave_up: Pace,
}

impl Refusals {
    /// Another connection got the place of one of this address.
    pub fn crowded(&self, closed: IpAddr, most: usize) {
        if let Some(unlogged) = self.crowded.line(Instant::now()) {
            warn!(%closed, most, unlogged,
                "closed a connection: there are too many unfinished handshakes");
        }
    }

    /// The TLS handshake failed.
    pub fn refused(&self, peer: SocketAddr, error: &io::Error) {
        if is_gone(error) {
            debug!(%peer, %error, "the client left during the TLS handshake");
        } else if let Some(names) = names_of_another(error) {
            if let Some(unlogged) = self.misnamed.line(Instant::now()) {
                warn!(%peer, names = names.join(", "), unlogged,
                    "refused a client: its certificate is not for the name of --client-name");
            }
        } else if let Some(unlogged) = self.refused.line(Instant::now()) {
            warn!(%peer, %error, unlogged, "refused a client in the TLS handshake");
        }
    }

    /// The handshake took too long.
    pub fn gave_up(&self, peer: SocketAddr, after: Duration) {
        if let Some(unlogged) = self.gave_up.line(Instant::now()) {
            warn!(%peer, seconds = after.as_secs(), unlogged, "gave a handshake up");
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
