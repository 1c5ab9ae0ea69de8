//! Connections: addresses, TLS and clients.

pub mod accept;
pub mod address;
pub mod certificates;
pub mod client;
pub mod connection;
pub mod refusals;
pub mod unfinished;
