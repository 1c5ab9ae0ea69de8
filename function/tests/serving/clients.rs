//! Crossplane's authority also signs certificates for providers.

use std::time::Duration;

use tokio::time::timeout;

use crate::calls::{call, connect_as};
use crate::process::{Running, program};
use crate::secret::{Authority, CROSSPLANE, Files, Mounted, PROVIDER};

async fn serve(mounted: &Mounted, arguments: &[&str]) -> Running {
    let always = ["--address=127.0.0.1:0", "--metrics-address="];
    let mut command = program(&[&always[..], arguments].concat());
    command.env("TLS_SERVER_CERTS_DIR", &mounted.folder);
    Running::start(&mut command).await
}

async fn answers(function: &Running, authority: &Authority, client: &str) -> bool {
    let identity = authority.client(client);
    match connect_as(function.address, identity, authority).await {
        Ok(channel) => call(&channel).await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_provider_cannot_call_a_function_that_knows_crossplanes_name() {
    let authority = Authority::new();
    let mut mounted = Mounted::new(&Files::of(&authority));
    let flag = format!("--client-name={CROSSPLANE}");
    let mut function = serve(&mounted, &[&flag]).await;
    for _ in 0..2 {
        assert!(answers(&function, &authority, CROSSPLANE).await);
        assert!(!answers(&function, &authority, PROVIDER).await);
        let line = function.said(&["refused a client", PROVIDER]).await;
        assert_eq!(line["level"], "WARN");
        assert!(line.to_string().contains("--client-name"), "{line}");
        // The rule holds for renewed certificates, too.
        mounted.write(&Files::of(&authority));
        function.said(&["renewed certificates"]).await;
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_with_crossplanes_name_is_refused() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let mounted = Mounted::new(&Files::of(&ours));
    let flag = format!("--client-name={CROSSPLANE}");
    let function = serve(&mounted, &[&flag]).await;
    let identity = theirs.client(CROSSPLANE);
    if let Ok(channel) = connect_as(function.address, identity, &ours).await {
        assert!(call(&channel).await.is_err());
    }
}

#[tokio::test]
async fn without_the_flag_every_client_of_the_authority_may_call() {
    let authority = Authority::new();
    let mounted = Mounted::new(&Files::of(&authority));
    let mut function = serve(&mounted, &[]).await;
    assert!(answers(&function, &authority, CROSSPLANE).await);
    assert!(answers(&function, &authority, PROVIDER).await);
    let refused = function.said(&["refused a client"]);
    assert!(timeout(Duration::from_millis(100), refused).await.is_err());
}
