//! TCP ports that any pod of the cluster may reach.
//!
//! A client that has not shown who it is, or what it wants, costs a file descriptor and nothing to
//! itself. So a [`room`] bounds the number of these clients, and the callers bound their time. The
//! room closes a connection of the address that has the most, so a client with one connection gets
//! in, whatever number of connections another client opens.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod accept;
pub mod http;
pub mod metrics;
pub mod pace;
pub mod room;
