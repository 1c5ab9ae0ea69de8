//! A workspace in the cluster: a StatefulSet with what belongs to it.
//!
//! [`render`] decides, in this order: [`resolved`] from policy, flavor and claim,
//! [`seen`] of what Crossplane observes and fetches, [`plan`] for what is composed
//! now, [`report`] for what the user reads. What the objects look like is in
//! `stateful_set`, `network`, `identity` and `files`.
//!
//! What pods are made of is chosen when they start and kept in status until they
//! stop: neither a changed flavor nor a changed claim ends somebody's work.

mod activity;
mod choice;
mod files;
pub mod flavor;
mod homes;
mod identity;
mod names;
mod network;
mod plan;
mod pod;
mod prices;
mod quantity;
mod queue;
mod record;
mod render;
mod report;
mod required;
mod resolved;
mod resource_names;
mod seen;
mod stateful_set;

pub use render::render;
pub use resource_names::{home_of_pod, owns};
