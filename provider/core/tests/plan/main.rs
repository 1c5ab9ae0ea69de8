//! Plans: what a pool does in each situation, and in every small one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod leases;
mod model;
mod situations;
mod world;
