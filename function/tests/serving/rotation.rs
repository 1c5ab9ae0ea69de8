//! Certificates that are renewed while the function runs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::calls::{Slow, call, connect, plain};
use crate::process::{PATIENCE, Running, program};
use crate::secret::{Authority, Files, Mounted};

async fn serve(mounted: &Mounted) -> Running {
    let mut command = program(&["--address=127.0.0.1:0", "--metrics-address="]);
    command.env("TLS_SERVER_CERTS_DIR", &mounted.folder);
    Running::start(&mut command).await
}

/// Whether a client with a certificate of the authority `client` gets an answer over a new
/// connection. The function's certificate must be one of the authority `server`.
async fn answers(address: SocketAddr, client: &Authority, server: &Authority) -> bool {
    match connect(address, client, server).await {
        Ok(channel) => call(&channel).await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_rotation_drops_no_call_and_ends_the_old_authority() {
    let (old, new) = (Authority::new(), Authority::new());
    let mut mounted = Mounted::new(&Files::of(&old));
    let mut function = serve(&mounted).await;
    let channel = connect(function.address, &old, &old).await.unwrap();
    call(&channel).await.unwrap();
    let running = Slow::begin(&channel);

    mounted.write(&Files::of(&new));
    let renewed = function.said(&["renewed certificates"]);
    let unbroken = async {
        loop {
            call(&channel).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = renewed => {}
        () = unbroken => {}
    }

    running.finish().await;
    call(&channel).await.unwrap();
    assert!(answers(function.address, &new, &new).await);
    assert!(!answers(function.address, &old, &new).await);
    assert!(!answers(function.address, &new, &old).await);
}

#[tokio::test]
async fn a_renewed_certificate_of_the_same_authority_is_used() {
    let authority = Authority::new();
    let mut mounted = Mounted::new(&Files::of(&authority));
    let mut function = serve(&mounted).await;
    for _ in 0..2 {
        mounted.write(&Files::of(&authority));
        function.said(&["renewed certificates"]).await;
        assert!(answers(function.address, &authority, &authority).await);
    }
}

#[tokio::test]
async fn broken_files_keep_the_certificates_in_use() {
    let authority = Authority::new();
    let good = Files::of(&authority);
    let mut mounted = Mounted::new(&good);
    let mut function = serve(&mounted).await;

    let half = good.certificate.len() / 2;
    let halved = good.certificate[..half].to_owned();
    let broken = [
        (
            "tls.crt",
            Files {
                certificate: halved,
                ..good.clone()
            },
        ),
        (
            "tls.key",
            Files {
                key: Files::of(&authority).key,
                ..good.clone()
            },
        ),
        (
            "ca.crt",
            Files {
                authority: String::new(),
                ..good.clone()
            },
        ),
    ];
    for (file, files) in broken {
        mounted.write(&files);
        let line = function.said(&["the certificates in use stay"]).await;
        assert_eq!(line["level"], "ERROR");
        let message = line["fields"]["message"].as_str().unwrap();
        let named = mounted.folder.join(file).display().to_string();
        assert!(message.contains(&named), "{message}");
        assert!(!message.contains(&files.key), "{message}");
        assert!(
            answers(function.address, &authority, &authority).await,
            "{file}"
        );
    }

    let new = Authority::new();
    mounted.write(&Files::of(&new));
    function.said(&["renewed certificates"]).await;
    assert!(answers(function.address, &new, &new).await);
}

#[tokio::test]
async fn a_missing_file_keeps_the_certificates_in_use() {
    let authority = Authority::new();
    let mounted = Mounted::new(&Files::of(&authority));
    let mut function = serve(&mounted).await;
    std::fs::remove_file(mounted.folder.join("ca.crt")).unwrap();
    function
        .said(&["the certificates in use stay", "ca.crt"])
        .await;
    assert!(answers(function.address, &authority, &authority).await);
}

#[tokio::test]
async fn clients_without_a_certificate_of_the_authority_are_refused() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let mounted = Mounted::new(&Files::of(&ours));
    let function = serve(&mounted).await;
    assert!(!answers(function.address, &theirs, &ours).await);
    if let Ok(channel) = plain(function.address).await {
        assert!(call(&channel).await.is_err());
    }
    assert!(answers(function.address, &ours, &ours).await);
}

/// A probe, a port scan or a hanging node must not keep Crossplane out.
#[tokio::test]
async fn clients_that_say_nothing_delay_nobody_and_are_given_up() {
    let authority = Authority::new();
    let mounted = Mounted::new(&Files::of(&authority));
    let function = serve(&mounted).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(function.address).await.unwrap());
    }
    let before = Instant::now();
    assert!(answers(function.address, &authority, &authority).await);
    assert!(before.elapsed() < Duration::from_secs(4));
    for stream in &mut silent {
        let end = timeout(PATIENCE, stream.read(&mut [0; 16])).await;
        assert_eq!(end.expect("the connection stays open").unwrap(), 0);
    }
}
