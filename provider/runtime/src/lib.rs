//! The managed-resource contract of Crossplane for kube-rs controllers.
//!
//! crossplane-runtime implements this contract for providers in Go. This crate has the parts of it
//! that a provider in Rust needs. The parts are independent: a controller calls them in the order
//! of its own reconcile. No part knows which resources are managed.
//!
//! | module | part of the contract |
//! |---|---|
//! | [`policies`] | the actions that `managementPolicies` permit |
//! | [`pause`] | `crossplane.io/paused` |
//! | [`requests`] | `crossplane.io/reconcile-requested-at` |
//! | [`poll`] | `crossplane.io/poll-interval`, and jitter |
//! | [`conditions`] | `Ready` and `Synced`, changed only when their meaning does |
//! | [`status`] | writes that keep the fields of other versions |
//! | [`finalizer`] | nothing is deleted before it is cleaned up |
//! | [`usage`] | a configuration in use is recorded before its credentials are read |
//! | [`protection`] | a configuration in use is not deleted |
//! | [`connection`] | `writeConnectionSecretToRef` |
//! | [`events`] | core/v1 events, the only ones Crossplane lets a provider write |
//! | [`crds`] | safe-start: a controller starts when its CRD is served |
//! | [`watch`] | watches that report when their first list is complete |
//! | [`lists`] | lists in pages, in little memory |
//! | [`unreadable`] | an object that cannot be read stops nobody else's work |
//! | [`leader`] | `--leader-election` |
//! | [`in_flight`] | a busy API server gets few requests at once |
//! | [`metrics`], [`readiness`], [`operations`] | `/metrics`, `/readyz`, `/healthz` |
//!
//! From the crate `api` it uses only `condition` and `managed`, which Crossplane defines for every
//! provider. It uses no kind of any provider.

pub mod conditions;
pub mod connection;
pub mod crds;
pub mod events;
pub mod finalizer;
mod happened;
pub mod in_flight;
pub mod leader;
pub mod lists;
pub mod metrics;
pub mod operations;
pub mod pause;
pub mod policies;
pub mod poll;
pub mod protection;
pub mod readiness;
pub mod requests;
pub mod status;
pub mod unreadable;
pub mod usage;
pub mod watch;

#[cfg(test)]
mod testing;
