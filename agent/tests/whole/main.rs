//! Tests of the agent's program on machines that are folders, with fake services.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod hooks;
mod jobs;
mod long_jobs;
mod machine;
mod reports;
mod server;
mod signature;
mod sources;
