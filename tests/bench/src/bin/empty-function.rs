//! The smallest possible composition function on this SDK: it echoes the request's tag and desired
//! state. The additional cost of another function is the cost of its own code, not of the SDK.

use std::process::ExitCode;

use clap::Parser;
use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerService;
use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse};
use function_sdk_rust::{Args, logging, response, serve};
use tonic::{Request, Response, Status};

struct Empty;

#[tonic::async_trait]
impl FunctionRunnerService for Empty {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let request = request.into_inner();
        Ok(Response::new(response::to(&request, response::DEFAULT_TTL)))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    logging::configure(args.debug);
    match serve(Empty, &args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("empty-function: {error}");
            ExitCode::FAILURE
        }
    }
}
