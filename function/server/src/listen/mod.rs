//! Connections: addresses, TLS, and who calls.

pub mod accept;
pub mod address;
pub mod certificates;
pub mod connection;
