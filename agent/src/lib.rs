//! The agent of a workspace. It runs inside of the workspace and reports whether it is in use.
//!
//! The modules of the four sources read them: [`ssh`], [`jobs`], [`gpu`] and [`kernels`]. [`signs`]
//! makes reports from the readings, and [`schedule`] decides when a report is due; both have no
//! side effects. [`watch`] connects these parts. [`hook`] runs the hooks before a stop.
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
pub mod job;
pub mod jobs;
pub mod kernels;
pub mod lease;
pub mod log;
pub mod places;
pub mod registration;
pub mod reporter;
pub mod run;
pub mod sample;
pub mod schedule;
pub mod signals;
pub mod signs;
pub mod ssh;
pub mod state;
pub mod status;
pub mod stop;
pub mod watch;
pub mod watching;
