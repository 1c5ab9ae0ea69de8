//! Crossplane provider that keeps spot GPU pools at their desired size.
//!
//! Follow a pool from [`reconcile::reconcile`] through [`pass::Pass`]: validate, plan (in
//! provider-core), act, status.

mod access;
mod account;
mod act;
mod announcements;
mod arguments;
mod beginnings;
mod by_account;
mod connection;
mod console_reader;
mod consoles;
mod context;
mod controllers;
mod convert;
mod counted;
mod expectations;
mod facts;
mod holds;
mod home;
mod home_zone;
mod identity;
mod inventory;
mod lease;
mod leases;
mod locking;
mod missing;
mod notices;
mod numbers;
mod observations;
mod observer;
mod open_regions;
mod pace;
mod pass;
mod plausible;
mod reconcile;
mod region;
mod regions;
mod replaced;
mod replica;
mod run;
mod seals;
mod setup;
mod shared;
#[cfg(test)]
mod simulation;
mod spot_prices;
mod status;
mod status_writer;
mod step_error;
mod sweeper;
mod turns;
mod unlisted;
mod validate;
mod zones;

use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser;
use tracing_subscriber::EnvFilter;

/// A look at many instances takes megabytes for a moment, and another thread frees them. jemalloc
/// returns them to the kernel at once. Its options are in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The lines that are logged: those of `RUST_LOG`, or of a level.
fn filter(debug: bool) -> EnvFilter {
    let level = if debug { "debug" } else { "info" };
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},hyper=info,aws=info,rustls=info")));
    // kube's client warns of an answer that it cannot read with the whole answer, and thus with the
    // user data of pools.
    match "kube_client::client=error".parse() {
        Ok(never) => filter.add_directive(never),
        Err(_) => EnvFilter::new("error"),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Arguments::parse();
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter(args.debug))
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps what is written to it. Clones share it.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_that_kube_cannot_read_is_not_logged_with_its_user_data() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter(true))
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "kube_client::client", "the whole answer");
            tracing::warn!("a line of the provider");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("a line of the provider"), "{text}");
        assert!(!text.contains("the whole answer"), "{text}");
    }
}
