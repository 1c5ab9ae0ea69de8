//! The login of a workspace.

/// The user name on every machine and in every pod.
pub const USER: &str = "developer";
