//! Certificates in a folder, written as the kubelet writes a mounted Secret.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// The name in the function's certificate.
pub const NAME: &str = "function.crossplane-system";
/// The name in Crossplane's certificate: its `ServiceAccount` and namespace.
pub const CROSSPLANE: &str = "crossplane.crossplane-system";
/// The name in the certificate that Crossplane gives a provider: its revision.
pub const PROVIDER: &str = "acme-provider-gpu-spot-0123456789ab";

/// A certificate and its key, in PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// A certificate authority that signs the certificates of the function and of Crossplane.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub fn certificate(&self) -> String {
        self.0.as_ref().pem()
    }

    pub fn function(&self) -> Identity {
        self.issue(NAME, ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub fn client(&self, name: &str) -> Identity {
        self.issue(name, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// The three files of the function's Secret.
#[derive(Clone)]
pub struct Files {
    pub certificate: String,
    pub key: String,
    pub authority: String,
}

impl Files {
    pub fn of(authority: &Authority) -> Self {
        let Identity { certificate, key } = authority.function();
        Self {
            certificate,
            key,
            authority: authority.certificate(),
        }
    }
}

/// A folder in which the files are links through `..data`. The kubelet replaces the link `..data`
/// as a whole.
pub struct Mounted {
    pub folder: PathBuf,
    version: u32,
}

impl Mounted {
    pub fn new(files: &Files) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("secret-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut mounted = Self { folder, version: 0 };
        mounted.write(files);
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            let link = mounted.folder.join(name);
            symlink(Path::new("..data").join(name), link).unwrap();
        }
        mounted
    }

    /// Exchanges all files at once, as the kubelet does.
    pub fn write(&mut self, files: &Files) {
        let old = format!("..{}", self.version);
        self.version += 1;
        let new = format!("..{}", self.version);
        let version = self.folder.join(&new);
        fs::create_dir(&version).unwrap();
        fs::write(version.join("tls.crt"), &files.certificate).unwrap();
        fs::write(version.join("tls.key"), &files.key).unwrap();
        fs::write(version.join("ca.crt"), &files.authority).unwrap();
        let link = self.folder.join("..data_tmp");
        symlink(&new, &link).unwrap();
        fs::rename(&link, self.folder.join("..data")).unwrap();
        if self.version > 1 {
            fs::remove_dir_all(self.folder.join(old)).unwrap();
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}
