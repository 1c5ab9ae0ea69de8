//! The settings of the broker.

use std::net::SocketAddr;
use std::path::PathBuf;

use bastion_core::target::InstanceAddress;
use clap::{Args, ValueEnum};

use crate::log::Retention;

/// The settings of the broker.
#[derive(Args)]
pub(crate) struct Settings {
    /// Folder of the socket and the host key
    #[arg(long, default_value = "/run/gpu-bastion")]
    pub(super) run: PathBuf,
    /// Folder where the system's name service looks for those whom it may ask for accounts
    #[arg(long, default_value = "/run/systemd/userdb")]
    pub(super) names: PathBuf,
    /// Folder of the audit log
    #[arg(long, default_value = "/var/lib/gpu-bastion/audit")]
    pub(super) audit: PathBuf,
    /// Name of this replica
    #[arg(long, env = "POD_NAME")]
    pub(super) replica: String,
    /// Namespace of the bastion
    #[arg(long, env = "POD_NAMESPACE")]
    pub(super) namespace: String,
    /// Secret with the host key that all replicas have
    #[arg(long, default_value = "gpu-bastion-host-key")]
    pub(super) host_key: String,
    /// Secret with the authority by which the bastion logs in to workspaces, in `devctl ssh` behind its
    /// login; none for a bastion that only connects
    #[arg(long)]
    pub(super) user_authority: Option<String>,
    /// Address of metrics and probes
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub(super) metrics: SocketAddr,
    /// Which address of EC2 instances the bastion reaches
    #[arg(long, value_enum, default_value_t)]
    pub(super) instance_address: Address,
    #[command(flatten)]
    pub(super) retention: Retention,
    /// User id of sshd, which all accounts have; it is another one than the broker's
    #[arg(long, default_value_t = 10_022)]
    pub(super) sshd_uid: u32,
}

/// An address of an EC2 instance.
#[derive(ValueEnum, Clone, Copy, Default)]
pub(super) enum Address {
    /// The address in the VPC
    #[default]
    Private,
    /// The public address
    Public,
}

impl From<Address> for InstanceAddress {
    fn from(address: Address) -> Self {
        match address {
            Address::Private => Self::Private,
            Address::Public => Self::Public,
        }
    }
}
