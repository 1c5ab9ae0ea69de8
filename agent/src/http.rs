//! HTTP clients of the agent: no redirects, one timeout for the whole call, and responses of every
//! status.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Body, Proxy};

use crate::log::Problem;

/// The largest response in bytes. Larger responses are refused.
const LONGEST: u64 = 1 << 20;

/// The servers that a client trusts.
pub enum Trust<'a> {
    /// Servers with a certificate of the machine's certificate authorities.
    Machine,
    /// Servers with a certificate of the authority in this file.
    File(&'a Path),
    /// Every server. Use it only for addresses of this machine.
    Anybody,
}

/// Creates a client.
pub fn client(trust: &Trust<'_>, timeout: Duration, proxy: Option<Proxy>) -> io::Result<Agent> {
    let config = Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(proxy)
        .user_agent(concat!("gpu-workspace-agent/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls(trust)?)
        .build();
    Ok(Agent::new_with_config(config))
}

/// The status and the text of a response.
pub fn answer(
    what: &str,
    answered: Result<Response<Body>, ureq::Error>,
) -> Result<(u16, String), Problem> {
    let broken = |error: ureq::Error| {
        let kind = match &error {
            ureq::Error::Io(error) => error.kind().to_string(),
            ureq::Error::Timeout(_) => "timeout".to_owned(),
            _ => "HTTP".to_owned(),
        };
        Problem::new(kind, format!("{what}: {error}"))
    };
    let mut response = answered.map_err(broken)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(LONGEST);
    Ok((status, body.read_to_string().map_err(broken)?))
}

fn tls(trust: &Trust<'_>) -> io::Result<TlsConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    let certificates: Vec<Certificate<'static>> = match trust {
        Trust::Anybody => return Ok(config.disable_verification(true).build()),
        // Certificates that cannot be read are left out. A server that needs them is then not
        // trusted.
        Trust::Machine => {
            let loaded = rustls_native_certs::load_native_certs().certs;
            let each = loaded.iter().map(|one| Certificate::from_der(one));
            each.map(|one| one.to_owned()).collect()
        }
        Trust::File(path) => {
            let unreadable = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            let pem = std::fs::read(path).map_err(unreadable)?;
            let items = ureq::tls::parse_pem(&pem);
            let certificates = items.filter_map(|item| match item {
                Ok(ureq::tls::PemItem::Certificate(one)) => Some(Ok(one)),
                Ok(_) => None,
                Err(error) => Some(Err(io::Error::other(error.to_string()))),
            });
            certificates
                .collect::<io::Result<_>>()
                .map_err(unreadable)?
        }
    };
    Ok(config
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build())
}
