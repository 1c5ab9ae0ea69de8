//! SSH to workspaces by the user's own OpenSSH: its options, its configuration, and the host keys that
//! it accepts.

pub mod client;
pub mod configuration;
pub mod host_keys;

/// The user that logs in to workspaces.
pub const USER: &str = "developer";
/// The port of sshd on a workspace.
pub const PORT: u16 = 22;
