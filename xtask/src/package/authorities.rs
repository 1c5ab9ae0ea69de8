//! The certificate authorities in runtime images: those that Mozilla trusts for servers, as the
//! crate `webpki-root-certs` has them.
//!
//! Cargo.lock pins the crate, so the file is the same whoever builds. The file of the machine that
//! builds may have authorities of that machine's network.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// The crate with the authorities.
pub(super) const CRATE: &str = "webpki-root-certs";
/// The path of the file in an image. rustls-native-certs reads it unless `SSL_CERT_FILE` is set.
pub(super) const PATH: &str = "etc/ssl/certs/ca-certificates.crt";

const LINE: usize = 64;

/// The file: all certificates, in PEM.
pub(super) static PEM: LazyLock<String> = LazyLock::new(|| {
    TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|certificate| block("CERTIFICATE", certificate))
        .collect()
});

/// A PEM block, with the line length of RFC 7468.
pub(super) fn block(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        lines.push(line.to_owned());
        rest = after;
    }
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn every_authority_is_in_the_file_and_readable() {
        let read: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(PEM.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(read, TLS_SERVER_ROOT_CERTS);
        assert!(PEM.lines().all(|line| line.len() <= LINE));
    }
}
