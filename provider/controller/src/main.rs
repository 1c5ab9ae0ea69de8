//! Crossplane provider that keeps spot GPU pools at their desired size.
//!
//! Follow a pool from [`reconcile::reconcile`] through [`pass::Pass`]: validate, plan (in
//! provider-core), act, status.

mod access;
mod act;
mod announcements;
mod arguments;
mod beginnings;
mod connection;
mod console_reader;
mod consoles;
mod context;
mod controllers;
mod convert;
mod counted;
mod expectations;
mod holds;
mod home;
mod home_zone;
mod identity;
mod inventory;
mod lease;
mod leases;
mod missing;
mod numbers;
mod observer;
mod pass;
mod plausible;
mod reconcile;
mod region;
mod regions;
mod run;
mod setup;
#[cfg(test)]
mod simulation;
mod spot_prices;
mod status;
mod status_writer;
mod step_error;
mod sweeper;
mod turns;
mod validate;

use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser;
use tracing_subscriber::EnvFilter;

/// A look at many instances takes megabytes for a moment. The C library's allocator would keep
/// them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Arguments::parse();
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
