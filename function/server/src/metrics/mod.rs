//! What the server counts, and where Prometheus reads it.

pub mod calls;
pub mod endpoint;
