//! `cargo xtask cluster`: the local cluster's command line.

use std::process::ExitCode;

use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    match arguments.command {}
}
