//! Tests of the planner with chosen situations and with every small pool.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod groups;
mod homes;
mod keys;
mod leases;
mod model;
mod moves;
mod replacements;
mod situations;
mod world;
