//! Development commands: code generation, the local cluster, packages.
//!
//! A thin dispatcher: every command lives in a file of its own, and what it
//! does in the crate that owns it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod cluster;

#[derive(Parser)]
#[command(name = "cargo xtask", version, about = "Development commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A local Kubernetes with Crossplane, without Docker
    Cluster(cluster::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Cluster(arguments) => cluster::run(arguments),
    }
}
