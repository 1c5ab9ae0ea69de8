//! Certificates as Crossplane makes them for its functions: one certificate authority, and a
//! 2048-bit RSA key with a certificate for the client and for the server.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::Outcome;

/// The name in the servers' certificate.
const SERVER: &str = "function.crossplane-system";

/// Writes a function's certificates into `folder`, with the file names that Crossplane uses when it
/// mounts them. Returns the TLS configuration with which a client can connect.
pub(crate) fn create(folder: &Path) -> Outcome<ClientTlsConfig> {
    let mut params = named("crossplane-root-ca")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(params, key()?)?;

    let (server, server_key) = issue(SERVER, ExtendedKeyUsagePurpose::ServerAuth, &authority)?;
    let (client, client_key) = issue(
        "crossplane",
        ExtendedKeyUsagePurpose::ClientAuth,
        &authority,
    )?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("ca.crt"), authority.as_ref().pem())?;
    fs::write(folder.join("tls.crt"), server)?;
    fs::write(folder.join("tls.key"), server_key)?;
    Ok(ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.as_ref().pem()))
        .identity(Identity::from_pem(client, client_key))
        .domain_name(SERVER))
}

fn issue(
    name: &str,
    usage: ExtendedKeyUsagePurpose,
    authority: &CertifiedIssuer<'_, KeyPair>,
) -> Outcome<(String, String)> {
    let key = key()?;
    let mut params = named(name)?;
    params.extended_key_usages = vec![usage];
    let certificate = params.signed_by(&key, authority)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Parameters with a subject of their own. If a certificate had the same subject as its issuer,
/// OpenSSL would take it for self-signed.
fn named(name: &str) -> Outcome<CertificateParams> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn key() -> Outcome<KeyPair> {
    Ok(KeyPair::generate_rsa_for(
        &PKCS_RSA_SHA256,
        RsaKeySize::_2048,
    )?)
}
