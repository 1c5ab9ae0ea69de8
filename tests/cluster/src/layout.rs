//! Everything about a cluster that is known before it starts.

use std::path::PathBuf;

use crate::binaries::Binaries;
use crate::network::Addresses;
use crate::state::StateFolder;

/// Where a cluster's things are.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The cluster's name.
    pub name: String,
    /// Its addresses.
    pub addresses: Addresses,
    /// Its state folder.
    pub state: StateFolder,
    /// The cache folder, which parts must be able to read.
    pub cache: PathBuf,
    /// The built binaries.
    pub binaries: Binaries,
    /// The Python that runs the EC2 emulator.
    pub python: PathBuf,
}

impl Layout {
    /// The image that holds a pod's namespaces.
    pub fn pause_image(&self) -> String {
        format!("{}/pause:local", self.addresses.registry())
    }

    /// The cgroup below which all containers of this cluster are, and nothing else.
    pub fn cgroup(&self) -> String {
        cgroup(self.addresses)
    }

    /// A link to the binary that does not change when its pins do.
    pub fn program(&self, name: &str) -> PathBuf {
        self.state.bin().join(name)
    }
}

/// The cgroup of the cluster with those addresses: unlike its name, they cannot be
/// another's on the same machine.
pub fn cgroup(addresses: Addresses) -> String {
    format!("gpu-workspaces-{}", addresses.index())
}
