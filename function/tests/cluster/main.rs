//! Workspaces in the cluster: what must hold whatever a claim, a policy, a flavor,
//! Kubernetes and Kueue say.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../case/mod.rs"]
mod case;
#[path = "../dice/mod.rs"]
mod dice;

mod cases;
mod fuzz;
mod kubernetes;
mod oracle;
mod request;
mod sight;
mod simulation;
mod steadiness;
mod world;
