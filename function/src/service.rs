//! The gRPC service around the decision.
//!
//! Whatever is wrong with a request is a fatal result of its response; a gRPC
//! error would tell Crossplane that the function is broken.

use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerService;
use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse};
use tonic::{Response, Status};
use tracing::debug;

use crate::composite::Composite;
use crate::render::render;
use crate::request::Request;

/// Serves `apiextensions.fn.proto.v1`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Function;

#[tonic::async_trait]
impl FunctionRunnerService for Function {
    async fn run_function(
        &self,
        request: tonic::Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        Ok(Response::new(answer(&request.into_inner())))
    }
}

/// Answers a request.
pub fn answer(call: &RunFunctionRequest) -> RunFunctionResponse {
    let request = Request::from(call);
    let response = render(&request);
    let composite = request.composite.as_ref().map(Composite::new);
    debug!(
        composite = composite.map(Composite::name),
        tag = call.meta.as_ref().map(|meta| meta.tag.as_str()),
        conditions = %response
            .conditions
            .iter()
            .map(|c| format!("{}={}/{}", c.type_, c.holds, c.reason))
            .collect::<Vec<_>>()
            .join(" "),
        "ran"
    );
    response.onto(call)
}
