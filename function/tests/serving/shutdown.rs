//! How the function ends, in a rollout or on a drained node.

use nix::sys::signal::Signal;
use tokio::time::timeout;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::calls::{Slow, call, plain};
use crate::process::{PATIENCE, Running, program};

/// Starts a function and a call. The call runs, according to the function's metrics.
async fn busy() -> (Running, tonic::transport::Channel, Slow) {
    let mut command = program(&[
        "--insecure",
        "--address=127.0.0.1:0",
        "--metrics-address=127.0.0.1:0",
    ]);
    let function = Running::start(&mut command).await;
    let channel = plain(function.address).await.unwrap();
    let slow = Slow::begin(&channel);
    let begun = async {
        while !has_begun(&function.metrics().await) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, begun)
        .await
        .expect("the call does not begin");
    (function, channel, slow)
}

fn has_begun(metrics: &str) -> bool {
    let mut started = metrics
        .lines()
        .filter(|line| line.starts_with("grpc_server_started_total") && line.contains("proto.v1."));
    started.next().unwrap().ends_with(" 1")
}

#[tokio::test]
async fn a_running_call_is_answered_before_the_function_ends() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (mut function, _channel, slow) = busy().await;
        function.signal(signal);
        function.said(&["finishing the running calls"]).await;
        let refused = async {
            while let Ok(channel) = plain(function.address).await {
                if call(&channel).await.is_err() {
                    break;
                }
            }
        };
        timeout(PATIENCE, refused)
            .await
            .expect("new clients are still served");
        slow.finish().await;
        assert!(function.ended().await.success());
    }
}

#[tokio::test]
async fn a_second_signal_ends_the_function_at_once() {
    let (mut function, _channel, slow) = busy().await;
    function.signal(Signal::SIGTERM);
    function.said(&["finishing the running calls"]).await;
    function.signal(Signal::SIGTERM);
    assert_eq!(function.ended().await.code(), Some(1));
    slow.cut_off().await;
}

/// Otherwise every rollout would take the whole time that the function allows for running calls.
#[tokio::test]
async fn idle_connections_and_watches_of_health_hold_nothing_up() {
    let mut function = Running::insecure().await;
    let channel = plain(function.address).await.unwrap();
    call(&channel).await.unwrap();
    let mut health = HealthClient::new(channel);
    let request = HealthCheckRequest::default();
    let mut watch = health.watch(request).await.unwrap().into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    function.signal(Signal::SIGTERM);
    let last = watch.message().await.unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
    assert!(watch.message().await.unwrap().is_none());
    function.said(&["stopped"]).await;
    assert!(function.ended().await.success());
}
