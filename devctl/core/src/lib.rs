//! The command line `devctl`, without side effects.
//!
//! [`grammar`] is the command line. [`commands`] has what each command does, over the traits of
//! [`host`]: the API server, the terminal, other programs, files and the clock. A laptop is one host;
//! every test is another. The other modules decide and have no side effects.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

pub mod claim;
pub mod commands;
pub mod configuration;
pub mod estimate;
pub mod grammar;
pub mod host;
pub mod name;
pub mod object;
pub mod output;
pub mod problem;
pub mod progress;
pub mod remote;
pub mod runs;
pub mod ssh;
pub mod table;
pub mod text;
pub mod why;
pub mod workspace;
