//! The program as Crossplane runs it: a process with flags, signals and files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod addresses;
mod calls;
mod clients;
mod limits;
mod process;
mod rotation;
mod secret;
mod shutdown;
mod startup;
mod strangers;
