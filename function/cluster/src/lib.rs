//! Workspaces in the cluster: each is a StatefulSet with the objects that belong to it.
//!
//! [`render`] decides in this order: [`resolved`] from policy, flavor and claim; [`seen`] from the
//! observed and required resources; [`plan`] of the composed resources; [`report`] for the user.
//! The modules `stateful_set`, `network`, `identity` and `files` define the objects.
//!
//! The settings of pods are chosen when the pods start and are kept in status until they stop, so
//! no change of a flavor or a claim ends running work.

mod activity;
mod choice;
mod existing;
mod files;
mod homes;
mod identity;
mod names;
mod network;
mod plan;
mod pod;
mod prices;
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
