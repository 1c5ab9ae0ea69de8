//! The managed-resource contract of Crossplane for kube-rs controllers.
//!
//! crossplane-runtime gives this contract to providers in Go; here are its parts
//! that a provider in Rust needs, each on its own: a controller calls them in the
//! order of its own reconcile. Nothing here knows what is managed.
//!
//! | module | part of the contract |
//! |---|---|
//! | [`policies`] | what `managementPolicies` permit |
//! | [`pause`] | `crossplane.io/paused` |
//! | [`conditions`] | `Ready` and `Synced`, changed only when their meaning does |
//! | [`finalizer`] | nothing is deleted before it is cleaned up |
//! | [`usage`] | a configuration in use is recorded before its credentials are read |
//! | [`events`] | core/v1 events, the only ones Crossplane lets a provider write |
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

pub mod conditions;
pub mod events;
pub mod finalizer;
pub mod pause;
pub mod policies;
pub mod usage;
