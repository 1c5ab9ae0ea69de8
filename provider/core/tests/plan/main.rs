//! Plans: what a pool does in each situation, and in every small one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod homes;
mod leases;
mod model;
mod moves;
mod situations;
mod world;
