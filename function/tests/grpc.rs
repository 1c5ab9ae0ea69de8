//! The function as Crossplane calls it: a gRPC server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;
#[path = "serving/process.rs"]
mod process;

use function_sdk_rust::proto::v1::function_runner_service_client::FunctionRunnerServiceClient;
use function_sdk_rust::proto::v1::{RunFunctionRequest, Severity};
use tonic::transport::Channel;

use process::Running;

/// The program, and a client of it.
async fn connect() -> (Running, FunctionRunnerServiceClient<Channel>) {
    let running = Running::insecure().await;
    let address = format!("http://{}", running.address);
    let client = FunctionRunnerServiceClient::connect(address).await.unwrap();
    (running, client)
}

#[tokio::test]
async fn a_claim_becomes_a_pool_over_the_wire() {
    let (_running, mut client) = connect().await;
    let response = client
        .run_function(case::request("new-workspace"))
        .await
        .unwrap();
    let response = response.into_inner();
    assert_eq!(response.meta.unwrap().tag, "c0ffee");
    assert!(response.desired.unwrap().resources.contains_key("pool"));
}

/// For a gRPC error, Crossplane would take the function for broken.
#[tokio::test]
async fn a_bad_claim_is_a_warning_and_no_grpc_error() {
    let (_running, mut client) = connect().await;
    for (name, severity) in [
        ("refused-owner", Severity::Warning),
        ("refused-policy-missing", Severity::Warning),
        ("refused-composite", Severity::Fatal),
    ] {
        let response = client
            .run_function(case::request(name))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(response.results[0].severity, severity as i32, "{name}");
        assert_eq!(response.meta.unwrap().tag, "c0ffee", "{name}");
    }
}

#[tokio::test]
async fn an_empty_request_is_answered() {
    let (_running, mut client) = connect().await;
    let response = client.run_function(RunFunctionRequest::default()).await;
    let response = response.unwrap().into_inner();
    assert_eq!(response.results[0].severity, Severity::Fatal as i32);
}
