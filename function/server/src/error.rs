//! Why the server cannot start, or has stopped.

use std::io;

use crate::listen::certificates;

/// An error of the server. Each message names the next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither certificates nor `--insecure` are given.
    #[error(
        "neither --tls-certs-dir (TLS_SERVER_CERTS_DIR) nor --insecure is given; Crossplane sets \
         the former, for a trial on this machine add --insecure"
    )]
    NoTransport,
    /// Without TLS no client has a name.
    #[error(
        "--client-name (CLIENT_NAME) is given, but --insecure serves clients without certificates; \
         leave one of the two out"
    )]
    NoClientNames,
    /// The certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] certificates::Error),
    /// An address has a wrong format.
    #[error(
        "{flag} {address:?}: {problem}; write an IP address and a port, for example [::]:9443, \
         0.0.0.0:9443 or :9443"
    )]
    Address {
        /// The flag with the address.
        flag: &'static str,
        /// The address as given.
        address: String,
        /// The problem with the address.
        problem: &'static str,
    },
    /// The system refuses to listen on the address.
    #[error("{flag} {address}: cannot listen: {source}; {next}", next = next_step(.source))]
    Listen {
        /// The flag with the address.
        flag: &'static str,
        /// The address.
        address: std::net::SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Signal handlers cannot be installed.
    #[error("cannot receive signals: {0}; check what restricts this process")]
    Signals(io::Error),
    /// The reflection service cannot be built from the protocol's descriptors.
    #[error("cannot serve reflection: {0}; please report this as a bug of function-gpu-workspace")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The server has stopped without a signal.
    #[error("the gRPC server failed: {0}; please report this as a bug of function-gpu-workspace")]
    Serve(#[from] tonic::transport::Error),
    /// A second signal ended the server while calls were running.
    #[error("a second signal ({signal}) cut the running calls off")]
    Interrupted {
        /// The name of the signal.
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
