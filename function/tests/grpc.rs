//! The function as Crossplane meets it: a gRPC server.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use function_gpu_workspace::service::Function;
use function_sdk_rust::proto::v1::function_runner_service_client::FunctionRunnerServiceClient;
use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerServiceServer;
use function_sdk_rust::proto::v1::{RunFunctionRequest, Severity};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};

async fn connect() -> FunctionRunnerServiceClient<Channel> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().add_service(FunctionRunnerServiceServer::new(Function));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    FunctionRunnerServiceClient::connect(format!("http://{address}"))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_claim_becomes_a_pool_over_the_wire() {
    let response = connect()
        .await
        .run_function(case::request("new-workspace"))
        .await
        .unwrap();
    let response = response.into_inner();
    assert_eq!(response.meta.unwrap().tag, "c0ffee");
    assert!(response.desired.unwrap().resources.contains_key("pool"));
}

/// A gRPC error would tell Crossplane that the function is broken.
#[tokio::test]
async fn a_bad_claim_is_a_fatal_result_and_no_grpc_error() {
    let mut client = connect().await;
    for name in [
        "refused-owner",
        "refused-policy-missing",
        "refused-composite",
    ] {
        let response = client
            .run_function(case::request(name))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(
            response.results[0].severity,
            Severity::Fatal as i32,
            "{name}"
        );
        assert_eq!(response.meta.unwrap().tag, "c0ffee", "{name}");
    }
}

#[tokio::test]
async fn an_empty_request_is_answered() {
    let response = connect()
        .await
        .run_function(RunFunctionRequest::default())
        .await;
    let response = response.unwrap().into_inner();
    assert_eq!(response.results[0].severity, Severity::Fatal as i32);
}
