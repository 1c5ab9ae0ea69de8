//! The addresses at which Crossplane can reach the function.

use std::net::SocketAddr;

use crate::calls::{call, plain};
use crate::process::{Running, program};

async fn reached(host: &str, port: u16) -> bool {
    let address: SocketAddr = format!("{host}:{port}").parse().unwrap();
    match plain(address).await {
        Ok(channel) => call(&channel).await.is_ok(),
        Err(_) => false,
    }
}

/// A cluster may have IPv4, IPv6, or both.
#[tokio::test]
async fn the_function_is_reached_by_ipv6_and_ipv4() {
    for (network, address, six, four) in [
        ("tcp", "[::]:0", true, true),
        ("tcp", ":0", true, true),
        ("tcp4", "[::]:0", false, true),
        ("tcp6", "[::]:0", true, false),
    ] {
        let function = Running::start(&mut program(&[
            "--insecure",
            "--metrics-address=",
            "--network",
            network,
            "--address",
            address,
        ]))
        .await;
        let port = function.address.port();
        assert_eq!(reached("[::1]", port).await, six, "{network} {address}");
        assert_eq!(
            reached("127.0.0.1", port).await,
            four,
            "{network} {address}"
        );
    }
}

#[tokio::test]
async fn insecure_wins_over_certificates() {
    let mut command = program(&[
        "--insecure",
        "--address=127.0.0.1:0",
        "--metrics-address=",
        "--tls-certs-dir=/nowhere",
    ]);
    let function = Running::start(&mut command).await;
    assert!(reached("127.0.0.1", function.address.port()).await);
}

/// Two functions on one developer's machine both want port 8080.
#[tokio::test]
async fn a_taken_metrics_port_does_not_stop_the_function() {
    let mut first = program(&[
        "--insecure",
        "--address=127.0.0.1:0",
        "--metrics-address=127.0.0.1:0",
    ]);
    let first = Running::start(&mut first).await;
    let taken = first.metrics.unwrap().to_string();
    let mut second = program(&[
        "--insecure",
        "--address=127.0.0.1:0",
        "--metrics-address",
        &taken,
    ]);
    let second = Running::start(&mut second).await;
    assert_eq!(second.metrics, None);
    assert!(reached("127.0.0.1", second.address.port()).await);
}
