//! `function-gpu-workspace`: serves the composition function until SIGTERM.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use function_gpu_workspace::kinds::KINDS;
use function_sdk_rust::logging;
use function_server::Arguments;
use function_server::answer::answer;
use function_server::grpc::endpoint::Function;
use function_workspace::spending::Spending;
use jiff::Timestamp;

/// A call makes thousands of small allocations and frees them together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    logging::configure(arguments.debug);
    let now = arguments.now;
    let spending = Arc::new(Spending::default());
    let observed = Arc::clone(&spending);
    let answering = Box::leak(Box::new(move |call| {
        let now = now.unwrap_or_else(Timestamp::now);
        answer(KINDS, call, now, |request, response| {
            observed.observe(request, response, Instant::now());
        })
    }));
    let function = Function {
        kinds: KINDS,
        answer: answering,
    };
    match function_server::run(function, vec![Box::new(spending)], &arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("function-gpu-workspace: {error}");
            ExitCode::FAILURE
        }
    }
}
