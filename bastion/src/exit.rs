//! Exit codes.

/// The exit code of a refusal. ssh ends with the same code if a connection fails (`ssh(1)`).
pub(crate) const REFUSED: u8 = 255;
