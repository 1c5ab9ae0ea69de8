//! A workspace's world in memory: Kubernetes, Crossplane, the providers and EC2.
//!
//! [`composite`] does what Crossplane's controller does with an answer of the
//! function, whoever runs it ([`engine`]): this process, for thousands of
//! schedules, or Crossplane's own engine, for some. [`upbound`] and [`spot`] are
//! the providers, [`usages`] is Crossplane's controller of Usages, [`luck`]
//! throws the dice. What must hold is in [`invariants`], at every moment, in [`rest`],
//! when everything works again, and in [`departure`], when the claim is deleted.

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
