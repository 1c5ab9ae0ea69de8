//! `function-gpu-workspace`: serves the composition function until SIGTERM.

use std::process::ExitCode;

use clap::Parser;
use function_gpu_workspace::service::Function;
use function_sdk_rust::{Args, logging, serve};

/// Composition function: a GPU workspace claim becomes desired resources.
#[derive(Parser)]
#[command(name = "function-gpu-workspace", version)]
struct Cli {
    #[command(flatten)]
    sdk: Args,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::configure(cli.sdk.debug);
    match serve(Function, &cli.sdk).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("function-gpu-workspace: {error}");
            ExitCode::FAILURE
        }
    }
}
