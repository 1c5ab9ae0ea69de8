//! Why the server does not start, or stops.

use std::io;

use crate::listen::certificates;

/// Each says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither TLS nor its absence was asked for.
    #[error(
        "neither --tls-certs-dir (TLS_SERVER_CERTS_DIR) nor --insecure is given; Crossplane sets \
         the former, for a trial on this machine add --insecure"
    )]
    NoTransport,
    /// The certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] certificates::Error),
    /// An address cannot be read.
    #[error(
        "{flag} {address:?}: {problem}; write an IP address and a port, for example [::]:9443, \
         0.0.0.0:9443 or :9443"
    )]
    Address {
        /// The flag that it was given by.
        flag: &'static str,
        /// As given.
        address: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The system does not let the server listen.
    #[error("{flag} {address}: cannot listen: {source}; {next}", next = next_step(.source))]
    Listen {
        /// The flag that the address was given by.
        flag: &'static str,
        /// Where it should have listened.
        address: std::net::SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// Signals cannot be received.
    #[error("cannot receive signals: {0}; check what restricts this process")]
    Signals(io::Error),
    /// The reflection service cannot be built from the protocol's descriptors.
    #[error("cannot serve reflection: {0}; please report this as a bug of function-gpu-workspace")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The server stopped by itself.
    #[error("the gRPC server failed: {0}; please report this as a bug of function-gpu-workspace")]
    Serve(#[from] tonic::transport::Error),
    /// A second signal cut running calls off.
    #[error("a second signal ({signal}) cut the running calls off")]
    Interrupted {
        /// Its name.
        signal: &'static str,
    },
}

fn next_step(problem: &io::Error) -> &'static str {
    match problem.kind() {
        io::ErrorKind::AddrInUse => "stop what listens there, or choose another port",
        io::ErrorKind::PermissionDenied => "choose a port above 1023",
        io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
        _ => "choose another address",
    }
}
