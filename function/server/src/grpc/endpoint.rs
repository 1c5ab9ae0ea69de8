//! `FunctionRunnerService` in both versions of the protocol.
//!
//! The versions differ only in the name of the package: Crossplane generates v1beta1 from v1.
//! Crossplane and functions before 1.17 use v1beta1.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::task::{Context, Poll};

use function_runtime::kind::Kinds;
use function_runtime::{request, response};
use futures::future::BoxFuture;
use jiff::Timestamp;
use prost::bytes::Bytes;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Code, Request, Response, Status};
use tower_service::Service;

use crate::answer::answer;
use crate::decode::call::Call;
use crate::encode::response::Answer;
use crate::grpc::codec::{Protocol, unreadable};

/// A version of the protocol.
pub trait Package: Send + Sync + 'static {
    /// The full name of the service.
    const SERVICE: &'static str;
    /// The path of the method.
    const RUN_FUNCTION: &'static str;
}

/// `apiextensions.fn.proto.v1`.
#[derive(Clone, Copy, Debug)]
pub struct V1;

impl Package for V1 {
    const SERVICE: &'static str = "apiextensions.fn.proto.v1.FunctionRunnerService";
    const RUN_FUNCTION: &'static str =
        "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
}

/// `apiextensions.fn.proto.v1beta1`.
#[derive(Clone, Copy, Debug)]
pub struct V1Beta1;

impl Package for V1Beta1 {
    const SERVICE: &'static str = "apiextensions.fn.proto.v1beta1.FunctionRunnerService";
    const RUN_FUNCTION: &'static str =
        "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction";
}

/// The function to serve.
#[derive(Clone, Copy)]
pub struct Function {
    /// The kinds that the function serves.
    pub kinds: Kinds,
    /// The time of each decision; none for the current time.
    pub now: Option<Timestamp>,
    /// A callback for each decision. It must not block.
    pub observe: Observe,
}

/// A callback that gets a request and its decision.
pub type Observe = &'static (dyn Fn(&request::Request, &response::Response) + Send + Sync);

/// The service for one version of the protocol.
pub struct Endpoint<P> {
    function: Function,
    limit: usize,
    package: PhantomData<P>,
}

impl<P> Endpoint<P> {
    /// Creates the service. `limit` is the size of the largest request in bytes.
    pub fn new(function: Function, limit: usize) -> Self {
        Self {
            function,
            limit,
            package: PhantomData,
        }
    }
}

impl<P> Clone for Endpoint<P> {
    fn clone(&self) -> Self {
        Self::new(self.function, self.limit)
    }
}

impl<P: Package> NamedService for Endpoint<P> {
    const NAME: &'static str = P::SERVICE;
}

impl<P: Package> Service<http::Request<Body>> for Endpoint<P> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: http::Request<Body>) -> Self::Future {
        let limit = self.limit;
        let function = self.function;
        Box::pin(async move {
            if call.uri().path() != P::RUN_FUNCTION {
                let known = format!("{} has the method RunFunction only", P::SERVICE);
                return Ok(Status::unimplemented(known).into_http());
            }
            let mut grpc = Grpc::new(Protocol).max_decoding_message_size(limit);
            let response = grpc.unary(Called(function), call).await;
            Ok(if is_too_large(&response) {
                too_large(limit).into_http()
            } else {
                response
            })
        })
    }
}

struct Called(Function);

impl UnaryService<Bytes> for Called {
    type Response = Answer;
    type Future = Ready<Result<Response<Answer>, Status>>;

    fn call(&mut self, call: Request<Bytes>) -> Self::Future {
        let Function {
            kinds,
            now,
            observe,
        } = self.0;
        let encoded = call.into_inner();
        let answered = match Call::read(&encoded, kinds) {
            Ok(call) => Ok(answer(
                kinds,
                call,
                now.unwrap_or_else(Timestamp::now),
                observe,
            )),
            Err(error) => unreadable(&encoded, &error),
        };
        ready(answered.map(Response::new))
    }
}

/// tonic uses this code only if a message exceeds the size limit.
fn is_too_large(response: &http::Response<Body>) -> bool {
    Status::from_header_map(response.headers())
        .is_some_and(|status| status.code() == Code::OutOfRange)
}

/// The error of Go's gRPC servers for this case, with the way to raise the limit.
fn too_large(limit: usize) -> Status {
    Status::resource_exhausted(format!(
        "the request is larger than {limit} bytes; raise the function's --max-recv-message-size \
         (MAX_RECV_MESSAGE_SIZE), in MB, by a DeploymentRuntimeConfig"
    ))
}
