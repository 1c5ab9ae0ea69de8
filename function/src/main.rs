//! `function-gpu-workspace`: serves the composition function until SIGTERM.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use function_gpu_workspace::kinds::KINDS;
use function_runtime::request::Request;
use function_runtime::response::Response;
use function_sdk_rust::logging;
use function_server::Arguments;
use function_workspace::spending::Spending;
use prometheus_client::collector::Collector;

/// A call makes thousands of small allocations and frees them together. mimalloc is fast at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    logging::configure(arguments.debug);
    let spending = Arc::new(Spending::default());
    let observed = Arc::clone(&spending);
    let observe = Box::leak(Box::new(move |request: &Request, response: &Response| {
        observed.observe(request, response, Instant::now());
    }));
    let collectors: Vec<Box<dyn Collector>> = vec![Box::new(spending)];
    match function_server::run(KINDS, observe, collectors, &arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("function-gpu-workspace: {error}");
            ExitCode::FAILURE
        }
    }
}
