//! Workspaces in the cluster: rules that must hold for every claim, policy and flavor, and for
//! every state of Kubernetes and Kueue.
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
