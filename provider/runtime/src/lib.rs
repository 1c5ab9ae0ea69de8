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
//! | [`requests`] | `crossplane.io/reconcile-requested-at` |
//! | [`poll`] | `crossplane.io/poll-interval`, and jitter |
//! | [`conditions`] | `Ready` and `Synced`, changed only when their meaning does |
//! | [`finalizer`] | nothing is deleted before it is cleaned up |
//! | [`usage`] | a configuration in use is recorded before its credentials are read |
//! | [`protection`] | a configuration in use is not deleted |
//! | [`connection`] | `writeConnectionSecretToRef` |
//! | [`events`] | core/v1 events, the only ones Crossplane lets a provider write |
//! | [`crds`] | safe-start: a controller begins when its CRD is served |
//! | [`watch`] | watches whose beginning is noticed |
//! | [`leader`] | `--leader-election` |
//! | [`metrics`], [`readiness`], [`operations`] | `/metrics`, `/readyz`, `/healthz` |
//!
//! Of the crate `api` it uses what Crossplane defines for every provider,
//! `condition` and `managed`, and no kind of any provider.

pub mod conditions;
pub mod connection;
pub mod crds;
pub mod events;
pub mod finalizer;
mod happened;
pub mod leader;
pub mod metrics;
pub mod operations;
pub mod pause;
pub mod policies;
pub mod poll;
pub mod protection;
pub mod readiness;
pub mod requests;
pub mod usage;
pub mod watch;

#[cfg(test)]
mod testing;
