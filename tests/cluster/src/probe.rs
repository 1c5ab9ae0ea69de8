//! Probes whether a part is ready.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::plan::Probe;

/// A local server that needs longer than this is not ready.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns `Ok` if the part is ready, else what the probe saw.
pub fn ready(probe: &Probe) -> Result<(), String> {
    match probe {
        Probe::Http { url, authority } => get(url, authority.as_deref()),
        Probe::Socket { path } => UnixStream::connect(path)
            .map(drop)
            .map_err(|error| format!("connect {}: {error}", path.display())),
    }
}

fn get(url: &str, authority: Option<&Path>) -> Result<(), String> {
    let mut config = Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        // A proxy from the environment could not reach a cluster on this host.
        .proxy(None);
    if let Some(path) = authority {
        config = config.tls_config(trusting(path)?);
    }
    let answer = Agent::new_with_config(config.build())
        .get(url)
        .call()
        .map_err(|error| format!("GET {url}: {error}"))?;
    if answer.status() == 200 {
        Ok(())
    } else {
        Err(format!("GET {url}: HTTP {}", answer.status()))
    }
}

fn trusting(authority: &Path) -> Result<TlsConfig, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", authority.display());
    let pem = std::fs::read(authority).map_err(|error| unreadable(&error))?;
    let certificate = Certificate::from_pem(&pem).map_err(|error| unreadable(&error))?;
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[certificate]))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build())
}
