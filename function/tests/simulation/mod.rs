//! A simulation in memory of everything around a workspace: Kubernetes, Crossplane, the providers
//! and EC2.
//!
//! [`composite`] does what Crossplane's controller does with an answer of the function. An
//! [`engine`] runs the function: either this process, for many schedules, or Crossplane's own
//! engine, for a few. [`upbound`] and [`spot`] simulate the providers, and [`usages`] simulates
//! Crossplane's controller of Usages. [`luck`] makes random events. The rules are in three modules:
//! [`invariants`] for every moment, [`rest`] for the time when everything works again, and
//! [`departure`] for the deletion of the claim.

pub mod api_server;
pub mod cloud;
pub mod composite;
pub mod departure;
pub mod engine;
pub mod invariants;
pub mod luck;
pub mod manifest;
pub mod rest;
pub mod schedule;
pub mod spot;
pub mod upbound;
pub mod usages;
pub mod world;
