//! The cluster's certificates: one authority, one certificate per part, and the
//! key pair that signs service account tokens.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, SanType,
};

use crate::cache::{self, create_folder};
use crate::identities;
use crate::network::{API_SERVICE, Addresses};

/// What can go wrong while certificates are made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The generator refused.
    #[error("make the certificate of {name}: {source}")]
    Generate {
        /// The name of the certificate's owner.
        name: String,
        /// The cause.
        source: rcgen::Error,
    },
    /// The files cannot be written.
    #[error(transparent)]
    Write(#[from] cache::Error),
}

/// The user as which the API server calls aggregated API servers.
pub const AGGREGATOR: &str = "aggregator";

/// A client of the API server, with its user and group.
struct Client {
    file: &'static str,
    user: &'static str,
    group: Option<&'static str>,
}

/// The clients of the API server. Kubernetes' bootstrap roles are bound to these names, so each
/// part has its own rights and no others.
const CLIENTS: &[Client] = &[
    Client {
        file: "admin",
        user: "admin",
        group: Some("system:masters"),
    },
    // The API server's own certificate for its calls of the kubelet.
    Client {
        file: "kubelet-client",
        user: "kube-apiserver-kubelet-client",
        group: Some("system:masters"),
    },
    Client {
        file: AGGREGATOR,
        user: AGGREGATOR,
        group: None,
    },
    Client {
        file: "controller-manager",
        user: "system:kube-controller-manager",
        group: None,
    },
    Client {
        file: "scheduler",
        user: "system:kube-scheduler",
        group: None,
    },
    Client {
        file: "kubelet",
        user: "system:node:node",
        group: Some("system:nodes"),
    },
    Client {
        file: "proxy",
        user: "system:kube-proxy",
        group: None,
    },
];

/// The files of one certificate.
#[derive(Debug, Clone)]
pub struct Files {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The folder of the certificates.
#[derive(Debug, Clone)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// The certificates in `folder`.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The certificate and the key with that name.
    pub fn files(&self, name: &str) -> Files {
        Files {
            certificate: self.folder.join(format!("{name}.crt")),
            key: self.folder.join(format!("{name}.key")),
        }
    }

    /// The private key that signs service account tokens, and the public key that verifies them.
    pub fn service_account(&self) -> (PathBuf, PathBuf) {
        (
            self.folder.join("service-account.key"),
            self.folder.join("service-account.pub"),
        )
    }

    /// Creates all certificates and keys.
    pub fn create(&self, addresses: Addresses) -> Result<(), Error> {
        create_folder(&self.folder)?;
        let authority = authority()?;
        cache::write(&self.authority(), authority.as_ref().pem())?;
        for client in CLIENTS {
            let mut params = named(client.user, client.group);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            self.issue(client.file, &params, &authority)?;
        }
        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let node = [Ipv4Addr::LOCALHOST, addresses.node()];
        let apiserver = [node.as_slice(), &[API_SERVICE]].concat();
        self.issue(
            "serving",
            &serving("kube-apiserver", &names, &apiserver)?,
            &authority,
        )?;
        let kubelet = serving("system:node:node", &["node"], &node)?;
        self.issue("kubelet-serving", &kubelet, &authority)?;
        for (name, address) in [
            (identities::CERTIFICATE, addresses.gateway()),
            (identities::PORTAL_CERTIFICATE, addresses.node()),
        ] {
            self.issue(name, &serving(name, &[], &[address])?, &authority)?;
        }
        self.create_service_account_keys()
    }

    fn issue(
        &self,
        name: &str,
        params: &CertificateParams,
        authority: &CertifiedIssuer<'_, KeyPair>,
    ) -> Result<(), Error> {
        let key = KeyPair::generate().map_err(fails(name))?;
        let certificate = params.signed_by(&key, authority).map_err(fails(name))?;
        let files = self.files(name);
        cache::write(&files.certificate, certificate.pem())?;
        write_secret(&files.key, &key.serialize_pem())
    }

    fn create_service_account_keys(&self) -> Result<(), Error> {
        // Tokens are signed with RS256, because every consumer of tokens supports it.
        let pair = KeyPair::generate_for(&PKCS_RSA_SHA256).map_err(fails("service accounts"))?;
        let (private, public) = self.service_account();
        write_secret(&private, &pair.serialize_pem())?;
        cache::write(&public, pair.public_key_pem())?;
        Ok(())
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut params = named("gpu-workspaces local cluster", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate().map_err(fails("the authority"))?;
    CertifiedIssuer::self_signed(params, key).map_err(fails("the authority"))
}

fn named(user: &str, group: Option<&str>) -> CertificateParams {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, user);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    // Python verifies certificates strictly from 3.13 on: without this extension (RFC 5280,
    // 4.2.1.1) it refuses the server.
    params.use_authority_key_identifier_extension = true;
    params
}

fn serving(user: &str, names: &[&str], addresses: &[Ipv4Addr]) -> Result<CertificateParams, Error> {
    let mut params = named(user, None);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for name in names {
        let name = (*name).try_into().map_err(fails(user))?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    for address in addresses {
        params
            .subject_alt_names
            .push(SanType::IpAddress(IpAddr::V4(*address)));
    }
    Ok(params)
}

/// Writes a private key that only its owner can read.
fn write_secret(path: &Path, text: &str) -> Result<(), Error> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(cache::Error::io("write", path))?;
    Ok(())
}

fn fails(name: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let name = name.to_owned();
    move |source| Error::Generate { name, source }
}
