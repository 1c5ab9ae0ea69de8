//! A real single-node Kubernetes with Crossplane, without Docker.
//!
//! [`up::up`] builds pinned binaries once, then starts a cluster in namespaces of its own.
//! [`down::down`] ends a cluster. [`control_plane`] is an API server alone, without nodes. Other
//! crates use a running cluster through [`Cluster::open`], and build further binaries with
//! [`binaries::ensure`].
//!
//! A reading order: [`prerequisites`], [`modules`], [`pins`], [`releases`] and [`binaries`], then
//! [`certificates`], [`configuration`], [`parts`] and the [`plan`] made of them, then [`launch`] on
//! the host's side and [`init`] inside the namespaces.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        reason = "a test that cannot prepare its case fails by panicking"
    )
)]

pub mod argocd;
pub mod binaries;
pub mod cache;
mod certificates;
mod cgroups;
mod cluster;
pub mod command;
mod configuration;
pub mod control_plane;
mod crossplane;
pub mod debian;
pub mod down;
pub mod durations;
pub mod emulator;
pub mod gpus;
mod helm;
pub mod identities;
pub mod images;
pub mod init;
pub mod interrupt;
pub mod kueue;
mod launch;
mod layout;
pub mod machines;
pub mod mirror;
pub mod modules;
pub mod narrowed;
pub mod network;
mod parts;
pub mod pins;
mod plan;
mod prerequisites;
mod probe;
mod processes;
pub mod progress;
mod provider_aws;
pub mod python;
pub mod releases;
pub mod report;
pub mod restart;
pub mod sources;
pub mod state;
mod supervisor;
pub mod up;
mod wait;

pub use cluster::{Cluster, Error as ClusterError};
pub use layout::Differences;
