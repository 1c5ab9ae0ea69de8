//! The data about a cluster that is known before it starts.

use std::path::PathBuf;

use crate::binaries::Binaries;
use crate::network::Addresses;
use crate::state::StateFolder;

/// The name, addresses and folders of a cluster.
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
    /// How the cluster differs from Kubernetes' defaults.
    pub differences: Differences,
}

/// How a cluster differs from Kubernetes' defaults.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// The API server's feature gates, such as `ConstrainedImpersonation=false`.
    pub feature_gates: Option<String>,
    /// The longest pause in seconds before the kubelet starts a container that has crashed again. By
    /// default, pauses grow from ten seconds to five minutes.
    pub restart_pause: Option<u16>,
    /// Whether dex runs in the cluster, and the API server takes its tokens.
    pub identities: bool,
}

impl Layout {
    /// The pause image, whose container holds a pod's namespaces.
    pub fn pause_image(&self) -> String {
        format!("{}/pause:local", self.addresses.registry())
    }

    /// The cgroup that contains all processes of this cluster and nothing else.
    pub fn cgroup(&self) -> String {
        cgroup(self.addresses)
    }

    /// The path of a link to the binary. The path stays the same if the binary's pins change.
    pub fn program(&self, name: &str) -> PathBuf {
        self.state.bin().join(name)
    }
}

/// The cgroup of the cluster with these addresses. Addresses are unique on a machine; a name may
/// occur in several cache folders.
pub fn cgroup(addresses: Addresses) -> String {
    format!("gpu-workspaces-{}", addresses.index())
}
