//! The load of `make bench-portal`. The benchmark (`bench`, in Python) starts the API server, the portal and the
//! backend beside it, and judges the figures; this program makes claims, asks, and is the browsers.
//!
//! Each command prints JSON, a line for each answer.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod asking;
mod bare;
mod browser;
mod changes;
mod claims;
mod connection;
mod crowd;
mod latency;
mod messages;
mod seen;
mod statistics;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The load of the portal's benchmark
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create claims with a status
    Claims(claims::Arguments),
    /// Ask for the same again and again, over connections that stay open
    Ask(asking::Arguments),
    /// Be browsers with an open page; commands come as lines of JSON on standard input
    Browsers(crowd::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    // Two dependencies enable a cryptography provider of rustls each, so rustls chooses neither.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let done = match Arguments::parse().command {
        Command::Claims(arguments) => claims::run(&arguments).await,
        Command::Ask(arguments) => asking::run(&arguments).await,
        Command::Browsers(arguments) => crowd::run(&arguments).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a file of JSON.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Outcome<T> {
    let named = |error: &dyn Error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    Ok(serde_json::from_str(&text).map_err(|error| named(&error))?)
}
