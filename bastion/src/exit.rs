//! Exit codes.

/// The exit code of a program that does not do what it is asked to. ssh ends with it, too, if a
/// connection fails (`ssh(1)`).
pub(crate) const REFUSED: u8 = 255;
