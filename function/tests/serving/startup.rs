//! The messages of the function when it cannot start.

use std::fs;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;

use crate::process::program;
use crate::secret::{Authority, Files, Mounted};

/// Starts the program. Expects that it ends with one line that contains all of the words.
async fn refused(arguments: &[&str], words: &[&str]) {
    let before = Instant::now();
    let ended = program(arguments).output().await.unwrap();
    // The program waits for nothing. The limit of 2 s leaves room for a busy machine.
    assert!(before.elapsed() < Duration::from_secs(2), "{arguments:?}");
    assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

#[tokio::test]
async fn without_certificates_nothing_is_served_unless_asked_for() {
    refused(
        &[],
        &["--tls-certs-dir", "TLS_SERVER_CERTS_DIR", "--insecure"],
    )
    .await;
    refused(&["--tls-certs-dir="], &["--insecure"]).await;
}

#[tokio::test]
async fn without_tls_no_client_is_told_apart() {
    let arguments = ["--insecure", "--client-name=crossplane.crossplane-system"];
    refused(&arguments, &["--client-name", "--insecure"]).await;
}

#[tokio::test]
async fn unusable_addresses_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (address, problem, next) in [
        ("nonsense", "no address", "[::]:9443"),
        ("127.0.0.1", "no address", "[::]:9443"),
        (":grpc", "port", "[::]:9443"),
        (
            "192.0.2.1:9443",
            "cannot listen",
            "an address of this machine",
        ),
        (taken.as_str(), "cannot listen", "another port"),
    ] {
        let flag = format!("--address={address}");
        let words = ["--address", address.trim_start_matches(':'), problem, next];
        refused(&["--insecure", &flag, "--metrics-address="], &words).await;
    }
    let words = ["--metrics-address", "nonsense"];
    let arguments = [
        "--insecure",
        "--address=127.0.0.1:0",
        "--metrics-address=nonsense",
    ];
    refused(&arguments, &words).await;
}

#[tokio::test]
async fn unusable_certificates_are_named() {
    let good = Files::of(&Authority::new());
    let other = Files::of(&Authority::new());
    let mismatched = Files {
        key: other.key,
        ..good.clone()
    };
    let empty = Files {
        authority: String::new(),
        ..good.clone()
    };
    for (files, file) in [(mismatched, "tls.key"), (empty, "ca.crt")] {
        let mounted = Mounted::new(&files);
        let folder = mounted.folder.to_str().unwrap();
        let words = [&format!("{folder}/{file}"), "TLS Secret"];
        refused(&["--tls-certs-dir", folder], &words.map(|w: &str| w)).await;
    }
    for file in ["tls.crt", "tls.key", "ca.crt"] {
        let mounted = Mounted::new(&good);
        fs::remove_file(mounted.folder.join(file)).unwrap();
        let folder = mounted.folder.to_str().unwrap();
        let words = [&format!("{folder}/{file}"), "TLS Secret"];
        refused(&["--tls-certs-dir", folder], &words.map(|w: &str| w)).await;
    }
}
