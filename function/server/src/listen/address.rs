//! Addresses to listen on, written as for Go's `net.Listen`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use listening::accept::accept;
use listening::pace::Pace;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

use crate::arguments::Network;
use crate::error::Error;

/// The largest number of connections that wait to be accepted. Go leaves this to the kernel.
const BACKLOG: i32 = 1024;

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    /// The address. For port 0 it has the port that the system chose.
    pub address: SocketAddr,
    socket: TcpListener,
    errors: Pace,
}

impl Listener {
    /// Listens on an address. `[::]` also accepts IPv4, independent of the system's default. If the
    /// kernel has no IPv6, `[::]` means all IPv4 addresses.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] if the text is not an address. [`Error::Listen`] if the system refuses.
    pub fn bind(flag: &'static str, text: &str, network: Network) -> Result<Self, Error> {
        let wanted = parse(text, network).map_err(|problem| Error::Address {
            flag,
            address: text.to_owned(),
            problem,
        })?;
        let failed = |source| Error::Listen {
            flag,
            address: wanted,
            source,
        };
        let socket = with_fallback(wanted, network, bind).map_err(failed)?;
        let socket = TcpListener::from_std(socket.into()).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self {
            address,
            socket,
            errors: Pace::default(),
        })
    }

    /// Accepts the next connection. It retries after errors that pass, such as too many open files.
    pub async fn accept(&self) -> (TcpStream, SocketAddr) {
        accept(&self.socket, &self.errors).await
    }

    /// The socket, for another server.
    pub fn into_socket(self) -> TcpListener {
        self.socket
    }
}

fn parse(text: &str, network: Network) -> Result<SocketAddr, &'static str> {
    let four = network == Network::Tcp4;
    let address: SocketAddr = if let Some((host @ ("" | "localhost"), port)) = text.rsplit_once(':')
    {
        let port: u16 = port.parse().map_err(|_| "its port is no number to 65535")?;
        match (host, network) {
            ("", Network::Tcp4) => (Ipv4Addr::UNSPECIFIED, port).into(),
            ("", _) => (Ipv6Addr::UNSPECIFIED, port).into(),
            (_, Network::Tcp6) => (Ipv6Addr::LOCALHOST, port).into(),
            _ => (Ipv4Addr::LOCALHOST, port).into(),
        }
    } else {
        text.parse().map_err(|_| "it is no address")?
    };
    match (address, network) {
        (SocketAddr::V6(six), _) if four && six.ip().is_unspecified() => {
            Ok((Ipv4Addr::UNSPECIFIED, six.port()).into())
        }
        (SocketAddr::V6(_), Network::Tcp4) => Err("--network tcp4 takes IPv4 addresses"),
        (SocketAddr::V4(_), Network::Tcp6) => Err("--network tcp6 takes IPv6 addresses"),
        _ => Ok(address),
    }
}

/// Binds to an address. If the system has no IPv6, `[::]` is replaced with all IPv4 addresses. A
/// port that is in use or forbidden is so in IPv4 too, so there is no second attempt.
fn with_fallback<S>(
    wanted: SocketAddr,
    network: Network,
    bind: impl Fn(SocketAddr, Network) -> io::Result<S>,
) -> io::Result<S> {
    let error = match bind(wanted, network) {
        Ok(socket) => return Ok(socket),
        Err(error) => error,
    };
    let refused = matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    );
    let both = network == Network::Tcp && wanted.is_ipv6() && wanted.ip().is_unspecified();
    if refused || !both {
        return Err(error);
    }
    let instead = SocketAddr::from((Ipv4Addr::UNSPECIFIED, wanted.port()));
    warn!(%error, address = %instead, "no IPv6 here, listening in IPv4 only");
    bind(instead, network)
}

fn bind(address: SocketAddr, network: Network) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(network == Network::Tcp6)?;
    }
    // Connections of the previous process must not prevent a restart.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, network: Network) -> String {
        parse(text, network).map_or_else(str::to_owned, |address| address.to_string())
    }

    #[test]
    fn addresses_are_written_as_in_go() {
        assert_eq!(parsed(":9443", Network::Tcp), "[::]:9443");
        assert_eq!(parsed(":9443", Network::Tcp4), "0.0.0.0:9443");
        assert_eq!(parsed("[::]:9443", Network::Tcp4), "0.0.0.0:9443");
        assert_eq!(parsed("localhost:1", Network::Tcp), "127.0.0.1:1");
        assert_eq!(parsed("localhost:1", Network::Tcp6), "[::1]:1");
        assert_eq!(parsed("10.0.0.1:1", Network::Tcp), "10.0.0.1:1");
    }

    #[test]
    fn an_invalid_address_is_refused_with_its_problem() {
        assert_eq!(parsed("9443", Network::Tcp), "it is no address");
        assert_eq!(
            parsed(":grpc", Network::Tcp),
            "its port is no number to 65535"
        );
        assert!(parsed("[::1]:1", Network::Tcp4).contains("IPv4"));
        assert!(parsed("10.0.0.1:1", Network::Tcp6).contains("IPv6"));
    }

    fn attempts(wanted: &str, network: Network, error: io::ErrorKind) -> Vec<String> {
        let asked = std::cell::RefCell::new(Vec::new());
        let refuse_six = |address: SocketAddr, _| {
            asked.borrow_mut().push(address.to_string());
            if address.is_ipv6() {
                Err(io::Error::from(error))
            } else {
                Ok(())
            }
        };
        let outcome = with_fallback(wanted.parse().unwrap(), network, refuse_six);
        let mut asked = asked.into_inner();
        asked.push(if outcome.is_ok() { "bound" } else { "failed" }.to_owned());
        asked
    }

    #[test]
    fn a_node_without_ipv6_is_served_in_ipv4() {
        // There is no `ErrorKind` for `EAFNOSUPPORT`.
        let missing = io::Error::from_raw_os_error(97).kind();
        let tried = attempts("[::]:9443", Network::Tcp, missing);
        assert_eq!(tried, ["[::]:9443", "0.0.0.0:9443", "bound"]);
        let tried = attempts("[::]:9443", Network::Tcp6, missing);
        assert_eq!(tried, ["[::]:9443", "failed"]);
        let tried = attempts("[::1]:9443", Network::Tcp, missing);
        assert_eq!(tried, ["[::1]:9443", "failed"]);
    }

    #[test]
    fn a_port_in_use_is_not_replaced_with_ipv4() {
        let tried = attempts("[::]:9443", Network::Tcp, io::ErrorKind::AddrInUse);
        assert_eq!(tried, ["[::]:9443", "failed"]);
    }
}
