//! Reads the certificates for mTLS, and reads them again when Crossplane renews them.
//!
//! One set of files becomes one `ServerConfig`. New connections use the newest one, so certificate,
//! key and client authority change together, and a client cannot resume a session that an old
//! authority allowed. Open connections keep their configuration.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};
use tokio::sync::watch;
use tracing::{error, info};

use crate::listen::client::Named;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";

/// Time between two reads of the files: three small reads from memory. kubelet itself updates a
/// changed Secret within about a minute.
const EVERY: Duration = Duration::from_secs(1);

/// Why the certificates cannot be used. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is missing or cannot be read.
    #[error(
        "cannot read {file}: {source}; --tls-certs-dir (TLS_SERVER_CERTS_DIR) names the folder \
         where the function's TLS Secret is mounted, with tls.crt, tls.key and ca.crt"
    )]
    Unreadable {
        /// The path of the file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error(
        "cannot use {file}: {problem}; delete the function's TLS Secret, and Crossplane writes it \
         anew"
    )]
    Unusable {
        /// The path of the file.
        file: PathBuf,
        /// The problem with the file.
        problem: String,
    },
}

/// The certificates in a folder, and their configuration.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
    client: Option<ServerName<'static>>,
    used: Files,
    newest: watch::Sender<Arc<ServerConfig>>,
}

impl Certificates {
    /// Reads the three files. If `client` is given, a client's certificate must be for this name.
    ///
    /// # Errors
    ///
    /// A file is missing or broken, or key and certificate do not match.
    pub fn read(folder: &Path, client: Option<ServerName<'static>>) -> Result<Self, Error> {
        let used = Files {
            certificate: read(folder, CERTIFICATE)?,
            key: read(folder, KEY)?,
            authority: read(folder, AUTHORITY)?,
        };
        let config = used.configuration(folder, client.as_ref())?;
        Ok(Self {
            folder: folder.to_owned(),
            client,
            used,
            newest: watch::Sender::new(Arc::new(config)),
        })
    }

    /// A receiver for the configuration of the newest usable files.
    pub fn newest(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.newest.subscribe()
    }

    /// Reads the files for ever. Files that cannot be used are logged once, and the last usable set
    /// stays in use.
    ///
    /// A change takes effect when two reads in a row found the same files, because a read may fall
    /// between the writes of two files.
    pub async fn follow(mut self) {
        let mut seen = Ok(self.used.clone());
        let mut settled = true;
        loop {
            tokio::time::sleep(EVERY).await;
            let found = self.look().await;
            if found != seen {
                seen = found;
                settled = false;
            } else if !settled {
                settled = true;
                self.take(&seen);
            }
        }
    }

    /// The files, or the text of the error.
    async fn look(&self) -> Result<Files, String> {
        let read = async |name: &str| {
            let file = self.folder.join(name);
            let content = tokio::fs::read(&file).await;
            content.map_err(|source| Error::Unreadable { file, source }.to_string())
        };
        Ok(Files {
            certificate: read(CERTIFICATE).await?,
            key: read(KEY).await?,
            authority: read(AUTHORITY).await?,
        })
    }

    fn take(&mut self, found: &Result<Files, String>) {
        if found.as_ref() == Ok(&self.used) {
            return;
        }
        let configured = found.as_ref().map_err(Clone::clone).and_then(|files| {
            let config = files.configuration(&self.folder, self.client.as_ref());
            config.map(|c| (files, c)).map_err(|e| e.to_string())
        });
        match configured {
            Ok((files, config)) => {
                self.used = files.clone();
                self.newest.send_replace(Arc::new(config));
                info!(folder = %self.folder.display(), "new connections use the renewed certificates");
            }
            Err(problem) => error!("the certificates in use stay: {problem}"),
        }
    }
}

/// The contents of the files. They must not be printed, because one is a private key.
#[derive(Clone, PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Files")
    }
}

impl Files {
    /// The TLS configuration: TLS 1.2 or later, HTTP/2, and client certificates of the authority
    /// are required.
    fn configuration(
        &self,
        folder: &Path,
        client: Option<&ServerName<'static>>,
    ) -> Result<ServerConfig, Error> {
        let unusable = |file: &str, problem: &dyn ToString| Error::Unusable {
            file: folder.join(file),
            problem: problem.to_string(),
        };
        let provider = Arc::new(default_provider());
        let identity = self.identity(folder, &provider)?;
        let mut roots = RootCertStore::empty();
        for authority in certificates(&self.authority).map_err(|e| unusable(AUTHORITY, &e))? {
            roots.add(authority).map_err(|e| unusable(AUTHORITY, &e))?;
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|e| unusable(AUTHORITY, &e))?;
        let verifier = match client.cloned() {
            Some(name) => Arc::new(Named { verifier, name }),
            None => verifier,
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| unusable(CERTIFICATE, &e))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }

    /// The certificate with its private key. Crossplane writes the key in PKCS#1 format.
    fn identity(&self, folder: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
        let unusable = |file: &str, problem: String| Error::Unusable {
            file: folder.join(file),
            problem,
        };
        let chain = certificates(&self.certificate).map_err(|e| unusable(CERTIFICATE, e))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|e| unusable(KEY, format!("no private key in PEM: {e}")))?;
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|e| unusable(KEY, e.to_string()))?;
        let identity = CertifiedKey::new(chain, key);
        match identity.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
                Ok(identity)
            }
            Err(rustls::Error::InconsistentKeys(_)) => Err(unusable(
                KEY,
                format!("it is not the key of the certificate in {CERTIFICATE}"),
            )),
            Err(error) => Err(unusable(CERTIFICATE, error.to_string())),
        }
    }
}

fn read(folder: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let file = folder.join(name);
    std::fs::read(&file).map_err(|source| Error::Unreadable { file, source })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("broken PEM: {error}"))?;
    if found.is_empty() {
        return Err("no certificate in PEM".to_owned());
    }
    Ok(found)
}
