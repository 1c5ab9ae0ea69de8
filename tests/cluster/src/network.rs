//! The clusters' addresses, and the host's side of each cluster's network.
//!
//! A veth pair, called the cable, connects the host and the cluster's network namespace. Cluster
//! number `i` has `10.243.i.0/30` for the cable, `10.244.i.0/24` for its pods and `10.245.i.0/24`
//! for the machines of its EC2 emulator. The host gets one interface and two routes per cluster.
//! The service network (10.96.0.0/16) is the same in every cluster, and only the inside of a
//! cluster has routes to it.

use std::net::Ipv4Addr;
use std::process::Command;

use serde::Deserialize;

use crate::command;

/// The service network of every cluster.
pub const SERVICES: &str = "10.96.0.0/16";
/// The first service address, the API server's.
pub const API_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The service address of the cluster's DNS.
pub const DNS_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
/// The address at which pods find EKS's Pod Identity agent, as on every EKS node. Only the inside
/// of the cluster has it.
pub const POD_IDENTITY_AGENT: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 23);
/// The cluster's end of the cable, in its own network namespace.
pub const UPLINK: &str = "uplink";

/// What can go wrong on the host's side.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `ip` failed.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// The output of `ip` is not the expected JSON.
    #[error("read the host's routes: {0}")]
    Routes(#[from] serde_json::Error),
    /// The host already has a route to some of the cluster's addresses.
    #[error(
        "the cluster needs {wanted}, which this host already routes ({route}): \
         remove that route, or choose another --name"
    )]
    Taken {
        /// The network that the cluster needs.
        wanted: Network,
        /// The host's route to a part of it.
        route: String,
    },
}

/// The addresses of one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    index: u8,
}

impl Addresses {
    /// The addresses of cluster number `index`.
    pub fn new(index: u8) -> Self {
        Self { index }
    }

    /// The cluster's number.
    pub fn index(self) -> u8 {
        self.index
    }

    /// The host's end of the cable.
    pub fn host(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 243, self.index, 1)
    }

    /// The cluster's end of the cable, which is the node's address.
    pub fn node(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 243, self.index, 2)
    }

    /// The pods' gateway: an address inside the cluster that both the host and the pods reach.
    pub fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 244, self.index, 1)
    }

    /// The cable's network.
    pub fn cable(self) -> Network {
        Network::new(Ipv4Addr::new(10, 243, self.index, 0), 30)
    }

    /// The pods' network.
    pub fn pods(self) -> Network {
        Network::new(Ipv4Addr::new(10, 244, self.index, 0), 24)
    }

    /// The public addresses of the EC2 emulator's machines.
    pub fn machines(self) -> Network {
        Network::new(Ipv4Addr::new(10, 245, self.index, 0), 24)
    }

    /// The address that the machines see instead of the addresses of pods.
    pub fn machines_gateway(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 245, self.index, 1)
    }

    /// The API server's URL for the host.
    pub fn apiserver(self) -> String {
        format!("https://{}:6443", self.node())
    }

    /// The registry's address, the same for the host, the node and the pods.
    pub fn registry(self) -> String {
        format!("{}:5000", self.gateway())
    }

    /// The EC2 emulator's URL, for the host and for pods.
    pub fn emulator(self) -> String {
        format!("http://{}:4566", self.gateway())
    }

    /// Where the provider of identities listens, for the host, the node and the pods.
    pub fn identities(self) -> String {
        format!("{}:5556", self.gateway())
    }

    /// The provider's URL, which is the issuer of its tokens.
    pub fn issuer(self) -> String {
        format!("https://{}/dex", self.identities())
    }

    /// The name of the host's interface: `gws` for GPU workspaces, and the cluster's number.
    pub fn interface(self) -> String {
        format!("gws{}", self.index)
    }
}

/// An IPv4 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: Ipv4Addr,
    length: u32,
}

impl Network {
    fn new(address: Ipv4Addr, length: u32) -> Self {
        Self { address, length }
    }

    /// Reads `10.0.0.0/8`, or `10.0.0.1` for a single address.
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        let length = length.parse().ok().filter(|length| *length <= 32)?;
        Some(Self::new(address.parse().ok()?, length))
    }

    fn contains(self, other: Self) -> bool {
        let mask = u32::MAX.checked_shl(32 - self.length).unwrap_or(0);
        self.length <= other.length
            && u32::from(self.address) & mask == u32::from(other.address) & mask
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

/// An entry of the output of `ip -json route`.
#[derive(Debug, Clone, Deserialize)]
pub struct Route {
    dst: String,
    #[serde(default)]
    dev: String,
}

impl std::fmt::Display for Route {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} dev {}", self.dst, self.dev)
    }
}

/// The host's routes that overlap with a cluster's networks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Overlaps {
    /// Routes to a whole network of the cluster or to a part of it. They exclude the cluster.
    pub taken: Vec<(Network, String)>,
    /// Wider routes, for example those of a VPN. The cluster's routes are more specific, so the
    /// kernel prefers them.
    pub shadowed: Vec<(Network, String)>,
}

/// Compares the routes with the cluster's networks.
pub fn overlaps(routes: &[Route], addresses: Addresses) -> Overlaps {
    let mut found = Overlaps::default();
    for route in routes {
        let Some(network) = Network::parse(&route.dst).filter(|network| network.length > 0) else {
            continue;
        };
        for wanted in [addresses.cable(), addresses.pods(), addresses.machines()] {
            if wanted.contains(network) {
                found.taken.push((wanted, route.to_string()));
            } else if network.contains(wanted) {
                found.shadowed.push((wanted, route.to_string()));
            }
        }
    }
    found
}

/// The host's IPv4 routes.
pub fn host_routes() -> Result<Vec<Route>, Error> {
    let text = command::output(Command::new("ip").args(["-4", "-json", "route"]))?;
    Ok(serde_json::from_str(&text)?)
}

/// Creates the cable between the host and the network namespace of process `init`.
pub fn connect(addresses: Addresses, init: i32) -> Result<(), Error> {
    let interface = addresses.interface();
    let host = format!("{}/30", addresses.host());
    let namespace = init.to_string();
    ip(&[
        "link", "add", &interface, "type", "veth", "peer", "name", UPLINK, "netns", &namespace,
    ])?;
    ip(&["address", "add", &host, "dev", &interface])?;
    ip(&["link", "set", &interface, "up"])?;
    let node = addresses.node().to_string();
    // The pods' gateway is on the loopback interface inside the cluster, and no address of these
    // networks is on the cable itself. So each route names the node as its gateway.
    for inside in [addresses.pods(), addresses.machines()] {
        let inside = inside.to_string();
        ip(&["route", "add", &inside, "via", &node, "dev", &interface])?;
    }
    Ok(())
}

/// Deletes the cable. The kernel deletes the routes over it.
pub fn disconnect(addresses: Addresses) -> Result<(), Error> {
    let interface = addresses.interface();
    if !interface_exists(&interface) {
        return Ok(());
    }
    match ip(&["link", "delete", &interface]) {
        // The kernel also deletes the interface when it removes the namespace, maybe at this
        // moment.
        Err(_) if !interface_exists(&interface) => Ok(()),
        result => result,
    }
}

pub(crate) fn interface_exists(name: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(name).exists()
}

pub(crate) fn ip(arguments: &[&str]) -> Result<(), Error> {
    command::output(Command::new("ip").args(arguments))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(destinations: &[&str]) -> Vec<Route> {
        destinations
            .iter()
            .map(|destination| Route {
                dst: (*destination).to_owned(),
                dev: "eth0".to_owned(),
            })
            .collect()
    }

    #[test]
    fn clusters_with_different_numbers_share_no_address() {
        let (one, two) = (Addresses::new(0), Addresses::new(1));
        assert!(!one.cable().contains(two.cable()));
        assert!(!one.pods().contains(two.pods()));
        assert!(!one.machines().contains(two.machines()));
        assert_ne!(one.interface(), two.interface());
        assert_eq!(two.apiserver(), "https://10.243.1.2:6443");
        assert_eq!(two.registry(), "10.244.1.1:5000");
        assert_eq!(two.emulator(), "http://10.244.1.1:4566");
    }

    #[test]
    fn an_interface_name_fits_into_the_kernels_fifteen_bytes() {
        assert!(Addresses::new(u8::MAX).interface().len() <= 15);
    }

    #[test]
    fn somebody_elses_pod_network_is_seen_before_it_is_taken() {
        let addresses = Addresses::new(0);
        let same = overlaps(&routes(&["default", "10.244.0.0/24"]), addresses);
        assert_eq!(same.taken.len(), 1);
        let inside = overlaps(&routes(&["10.244.0.7"]), addresses);
        assert_eq!(inside.taken[0].1, "10.244.0.7 dev eth0");
        let neighbour = overlaps(&routes(&["10.244.1.0/24", "192.168.0.0/16"]), addresses);
        assert_eq!(neighbour, Overlaps::default());
    }

    #[test]
    fn a_wide_vpn_route_is_told_and_does_not_forbid_the_cluster() {
        let found = overlaps(&routes(&["10.0.0.0/8", "0.0.0.0/0"]), Addresses::new(3));
        assert!(found.taken.is_empty());
        assert_eq!(found.shadowed.len(), 3);
    }
}
