//! What INIT is to do, as data: written by `up`, read by INIT.
//!
//! It leaves INIT no choice, so what a cluster consists of can be read in
//! `<state>/plan.json`.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One cluster's namespaces and the parts in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The host name inside.
    pub hostname: String,
    /// The cgroup that everything in it is below.
    pub cgroup: String,
    /// The node's address, on the cable.
    pub node: Ipv4Addr,
    /// The host's address, on the cable: the default route.
    pub host: Ipv4Addr,
    /// The address that host and pods share.
    pub gateway: Ipv4Addr,
    /// The network of the EC2 emulator's machines.
    pub machines: String,
    /// Folders that get an empty file system inside, so that what parts write to
    /// fixed places (/run/containerd, /var/lib/cni) never reaches the host.
    pub private_folders: Vec<PathBuf>,
    /// A folder that stays visible even if it is under one of those.
    pub shared_folder: PathBuf,
    /// Files put in the place of others, inside.
    pub replaced_files: Vec<ReplacedFile>,
    /// Environment variables of every part; nothing else is inherited.
    pub environment: Vec<(String, String)>,
    /// The programs, in the order in which they are listed to people.
    pub parts: Vec<Part>,
}

/// A file that is shown in another's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplacedFile {
    /// What is shown.
    pub source: PathBuf,
    /// Where.
    pub target: PathBuf,
}

/// One long-running program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name to people.
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
    /// How to see that it is ready.
    pub ready: Probe,
    /// Where its output goes.
    pub log: PathBuf,
}

/// How to see that something is ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Probe {
    /// GET answers 200.
    Http {
        /// What to get.
        url: String,
        /// The authority that signed the server's certificate, for https.
        #[serde(default)]
        authority: Option<PathBuf>,
    },
    /// Somebody accepts connections on a Unix socket.
    Socket {
        /// Its path.
        path: PathBuf,
    },
}
