//! A cluster's plan. `up` writes it to `<state>/plan.json`, and INIT reads it (see
//! [`init`](crate::init)).
//!
//! INIT makes no choices of its own, so `<state>/plan.json` shows everything that the cluster
//! consists of.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One cluster: its namespaces, and the programs in them, called parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The host name inside the namespaces.
    pub hostname: String,
    /// The cgroup above all processes of the cluster.
    pub cgroup: String,
    /// The node's address: the cluster's end of the veth pair to the host, called the cable.
    pub node: Ipv4Addr,
    /// The host's end of the cable. The cluster's default route leads to it.
    pub host: Ipv4Addr,
    /// The address of the pods' gateway, inside the cluster. Both the host and the pods reach it.
    pub gateway: Ipv4Addr,
    /// The network of the machines that the EC2 emulator boots.
    pub machines: String,
    /// Folders over which INIT mounts an empty file system. Parts write to fixed paths in them,
    /// such as /run/containerd and /var/lib/cni, and these files must not reach the host.
    pub private_folders: Vec<PathBuf>,
    /// A folder that stays visible even if it is inside a private folder.
    pub shared_folder: PathBuf,
    /// Files that INIT mounts over other files.
    pub replaced_files: Vec<ReplacedFile>,
    /// Environment variables of every part. A part inherits no other variable.
    pub environment: Vec<(String, String)>,
    /// The parts, in the order in which `status` lists them.
    pub parts: Vec<Part>,
}

/// A file that INIT mounts over another file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplacedFile {
    /// The file with the new contents.
    pub source: PathBuf,
    /// The file that it covers.
    pub target: PathBuf,
}

/// One long-running program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The name that people see and use.
    pub name: String,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables of this part only.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// Parts that must be ready before this one starts.
    #[serde(default)]
    pub after: Vec<String>,
    /// The probe of its readiness.
    pub ready: Probe,
    /// Where its output goes.
    pub log: PathBuf,
}

/// A test for readiness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Probe {
    /// An HTTP GET must answer with status 200.
    Http {
        /// The address.
        url: String,
        /// For https: the certificate authority that signed the server's certificate.
        #[serde(default)]
        authority: Option<PathBuf>,
    },
    /// A process must accept connections on a Unix socket.
    Socket {
        /// Its path.
        path: PathBuf,
    },
}
