//! As whom people log in.

/// Who logs in.
pub const USER: &str = "developer";
