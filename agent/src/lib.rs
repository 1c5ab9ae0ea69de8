//! Who uses a workspace, found out inside of it.
//!
//! What signs mean is decided without effects: [`signs`] makes a report of what was seen,
//! [`schedule`] says when one is due, and the modules of the four sources ([`ssh`],
//! [`jobs`], [`gpu`], [`kernels`]) tell use from its absence. [`watch`] looks, remembers
//! and reports; [`hook`] runs what the owner wants to be run before a stop.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod arguments;
pub mod destination;
pub mod ec2;
pub mod file;
pub mod gpu;
pub mod hook;
pub mod http;
pub mod imds;
pub mod install;
pub mod interruption;
pub mod jobs;
pub mod kernels;
pub mod lease;
pub mod log;
pub mod places;
pub mod reporter;
pub mod run;
pub mod schedule;
pub mod signals;
pub mod signs;
pub mod ssh;
pub mod state;
pub mod status;
pub mod stop;
pub mod watch;
