//! Crossplane provider that keeps spot GPU pools full.
//!
//! Follow a pool from [`reconcile::reconcile`] through [`pass::Pass`]: validate,
//! plan (in provider-core), act, status.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

mod access;
mod act;
mod announcements;
mod connection;
mod context;
mod controllers;
mod convert;
mod counted;
mod endings;
mod home;
mod identity;
mod inventory;
mod lease;
mod leases;
mod missing;
mod observer;
mod pass;
mod plausible;
mod reconcile;
mod region;
mod regions;
mod run;
#[cfg(test)]
mod simulation;
mod status;
mod status_writer;
mod sweeper;
mod turns;
mod validate;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

/// A look at many instances takes megabytes for a moment, which the C library's
/// allocator keeps.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps spot GPU pools full.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Log what is decided and why.
    #[arg(short, long, env = "DEBUG")]
    debug: bool,
    /// Namespace of the provider's identity; Crossplane sets it.
    #[arg(long, env = "POD_NAMESPACE", default_value = "crossplane-system")]
    namespace: String,
    /// Pools reconciled at once. Most of a reconcile is waiting, for the API server or
    /// for AWS.
    #[arg(long, default_value_t = 300)]
    max_reconcile_rate: u16,
    /// How often a pool is looked at that nothing happens to, a tenth more or
    /// less; the annotation crossplane.io/poll-interval overrides it.
    #[arg(long, default_value = "1m")]
    poll: kube::core::Duration,
    /// How long an instance of this control plane has to belong to no pool before it
    /// is terminated.
    #[arg(long, default_value = "10m")]
    orphan_grace: kube::core::Duration,
    /// Where /metrics, /readyz and /healthz are served; empty: nowhere.
    #[arg(long, env = "OPERATIONS_ADDRESS", default_value = ":8080")]
    operations_address: String,
    /// Of several replicas let one work and the others stand by.
    #[arg(long, env = "LEADER_ELECTION")]
    leader_election: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let level = if args.debug { "debug" } else { "info" };
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},hyper=info,aws=info,rustls=info")));
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match run::run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "cannot run");
            ExitCode::FAILURE
        }
    }
}
