//! The portal: a browser and an HTTP API in front of claims, as the person who uses them.
//!
//! A request comes through [`server`] to [`routes`]. [`sessions`] says who is signed in, by [`oidc`];
//! [`rights`] says as whom the portal acts for them. Reads are from [`mirror`]; writes go to the API server as the
//! person, by [`cluster`]. The portal keeps nothing but sessions: claims are in Kubernetes.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use function_gpu_workspace::kinds::{self, KINDS};
use kube::Client;
use tokio::net::TcpListener;
use tracing::{error, info};

use crate::access::Access;
use crate::configuration::ActAs;
use crate::objects::Served;
use crate::rights::Rights;

const FLAVORS: Served = Served::ours("WorkspaceFlavor", "workspaceflavors");

mod access;
mod app;
mod bearer;
mod cluster;
mod configuration;
mod described;
mod following;
mod metrics;
mod mirror;
mod objects;
mod oidc;
mod own_rights;
mod pace;
mod people;
mod platform;
mod refusal;
mod renewal;
mod request;
mod rights;
mod routes;
mod seal;
mod server;
mod sessions;

/// The portal for GPU workspaces.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// File with the configuration.
    #[arg(long, default_value = "/etc/gpu-portal/portal.yaml")]
    configuration: PathBuf,
    /// Address to listen on.
    #[arg(long, default_value = "0.0.0.0:8443")]
    listen: String,
    /// Address for metrics and probes, without TLS.
    #[arg(long, default_value = "0.0.0.0:8080")]
    metrics: String,
    /// File with the certificate chain for TLS, as PEM.
    #[arg(long, default_value = "/etc/gpu-portal/tls/tls.crt")]
    tls_certificate: PathBuf,
    /// File with the key of the certificate, as PEM.
    #[arg(long, default_value = "/etc/gpu-portal/tls/tls.key")]
    tls_key: PathBuf,
    /// Namespace of the portal, in which the sessions are.
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(std::io::stderr)
        .init();
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = error.to_string(), "the portal cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    // Both ends of TLS use it. It is there already if somebody was faster.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let configuration =
        configuration::read(&arguments.configuration, configuration::configuration)?;
    let id = configuration.client.id.clone();
    let issuer = configuration::read(&configuration.authentication, |text| {
        configuration::issuer(text, &id)
    })?;
    let secret = configuration::read(&configuration.client.secret_file, |text| {
        Ok(text.trim_end().to_owned())
    })?;
    let tls = server::tls(&arguments.tls_certificate, &arguments.tls_key)?;
    let redirect = configuration.public_url.join("login/callback")?.to_string();
    let trusted = oidc::trusted(issuer.authority.as_deref())?;
    let provider = oidc::Provider::new(issuer, id, secret, redirect, trusted)?;

    let client = Client::try_default().await?;
    own_rights::check(client.clone()).await?;
    let people = people::People::follow(client.clone()).await?;
    let flavors = objects::follow(client.clone(), FLAVORS).await?;
    let platform = platform::Followed::follow(client.clone(), flavors, people.users());
    let kinds = configuration.limits.clone().map_or(KINDS, kinds::limited);
    let rights = match configuration.act_as {
        ActAs::Account => Rights::Account(people),
        ActAs::Person => Rights::Person(people, Access::follow(client.clone()).await?),
    };
    let limits = configuration.sessions.clone();
    let sessions = sessions::Sessions::follow(client.clone(), &arguments.namespace, limits);
    let portal = app::Portal {
        origin: configuration.public_url.origin().ascii_serialization(),
        mirror: mirror::Mirror::follow(client.clone()).await?,
        rights,
        platform: platform.await?,
        kinds,
        bearers: configuration
            .bearer_tokens
            .then(|| bearer::Bearers::new(client.clone())),
        sessions: sessions.await?,
        configuration,
        client,
        provider,
        metrics: Arc::new(metrics::Metrics::new()),
    };
    let listener = TcpListener::bind(&arguments.listen).await?;
    let probes = TcpListener::bind(&arguments.metrics).await?;
    tokio::spawn(metrics::serve(probes, Arc::clone(&portal.metrics)));
    info!(address = %listener.local_addr()?, origin = portal.origin, "serving");
    server::serve(listener, tls, routes::router(Arc::new(portal))).await?;
    info!("ended");
    Ok(())
}
