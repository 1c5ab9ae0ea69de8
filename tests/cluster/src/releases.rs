//! Official release programs, fetched instead of built.
//!
//! `BINARIES=release` switches this on. The programs that [`RELEASES`] pins are then fetched, and
//! each file is compared with its SHA-256. All other programs are still built from source.
//! `BINARIES_MIRROR` names a mirror: a URL that replaces `https://` at the start of each address.

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::io::{Read, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::cache::{self, Cache, key};
use crate::progress::Step;
use crate::{command, interrupt};

/// What can go wrong while fetching a release.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `BINARIES` has an unknown value.
    #[error("BINARIES is `{0}`: it is `source`, which is also the default, or `release`")]
    Origin(String),
    /// The server cannot be reached, or it does not have the file.
    #[error("fetch {url}: {source}. Without BINARIES=release it is built from source")]
    Fetch {
        /// The address.
        url: String,
        /// The client's error.
        source: Box<ureq::Error>,
    },
    /// The transfer broke off, or the file cannot be written.
    #[error("fetch {url}: {source}")]
    Transfer {
        /// The address.
        url: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file differs from the pinned one, or is incomplete.
    #[error(
        "{url} has the SHA-256 {found}, and {expected} is pinned in tests/cluster/src/releases.rs: \
         nothing of it is used"
    )]
    Digest {
        /// The address.
        url: String,
        /// The pinned digest.
        expected: &'static str,
        /// The digest of the fetched file.
        found: String,
    },
    /// The archive cannot be unpacked, for example because it lacks a program.
    #[error("unpack {url}: {source}")]
    Unpack {
        /// The address.
        url: String,
        /// The error of tar.
        source: command::Error,
    },
    /// The cache folder cannot be written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// Ctrl-C asked this process to end.
    #[error("interrupted")]
    Interrupted,
}

/// Where programs come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// All programs are built from source.
    Source,
    /// Pinned releases are fetched; other programs are built from source.
    Release {
        /// The text that replaces `https://`, with a slash at its end.
        mirror: Option<String>,
    },
}

impl Origin {
    /// Reads `BINARIES` and `BINARIES_MIRROR`.
    pub fn from_environment() -> Result<Self, Error> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        match variable("BINARIES").as_deref() {
            None | Some("" | "source") => Ok(Self::Source),
            Some("release") => Ok(Self::Release {
                mirror: variable("BINARIES_MIRROR")
                    .filter(|url| !url.is_empty())
                    .map(|url| format!("{}/", url.trim_end_matches('/'))),
            }),
            Some(other) => Err(Error::Origin(other.to_owned())),
        }
    }

    /// The release that this program is fetched from; none if the program is built from source.
    pub(crate) fn release_of(&self, program: &str) -> Option<&'static Release> {
        // The pinned files are for Linux on x86-64 only.
        let is_ours = cfg!(all(target_os = "linux", target_arch = "x86_64"));
        let has = |release: &&Release| release.programs.iter().any(|(name, _)| *name == program);
        match self {
            Self::Release { .. } if is_ours => RELEASES.iter().find(has),
            _ => None,
        }
    }
}

/// A file that a project publishes as its release.
#[derive(Debug)]
pub struct Release {
    /// The version, as in the `go.mod` of the module.
    pub version: &'static str,
    /// Its address after `https://`, for Linux on x86-64. `{version}` stands for `v1.2.3`
    /// and `{number}` for `1.2.3`.
    address: &'static str,
    /// The digest of the file, in hexadecimal digits.
    sha256: &'static str,
    /// The names of its programs, each with its path in the archive. An empty path means that the
    /// file itself is the program.
    pub programs: &'static [(&'static str, &'static str)],
}

/// The releases that can be fetched.
///
/// We have not fetched these files from these addresses ourselves. The digests come from public
/// build files of other projects that pin the same files. A program is missing here if we found no
/// digest of its version.
pub static RELEASES: &[Release] = &[
    Release {
        version: "v1.37.0",
        address: "dl.k8s.io/release/{version}/bin/linux/amd64/kubelet",
        sha256: "ee554f77da57ad40a5d5f8625ac9c4af8b75d9d5a259367a885e5e816954b044",
        programs: &[("kubelet", "")],
    },
    Release {
        version: "v1.37.0",
        address: "dl.k8s.io/release/{version}/bin/linux/amd64/kubectl",
        sha256: "6129359f4e1f3848a5572ccb0b26cf28b8ca08cef38c95a765b2f64a2c961a2f",
        programs: &[("kubectl", "")],
    },
    Release {
        version: "v3.7.1",
        address: "github.com/etcd-io/etcd/releases/download/{version}/etcd-{version}-linux-amd64.tar.gz",
        sha256: "e8cd3fa8064c98137c5dbd78b76f969417ace84efb83c481041d7a52ffdd8fb9",
        programs: &[("etcd", "etcd-{version}-linux-amd64/etcd")],
    },
    Release {
        version: "v2.2.0",
        address: "github.com/containerd/containerd/releases/download/{version}/containerd-{number}-linux-amd64.tar.gz",
        sha256: "b9626a94ab93b00bcbcbf13d98deef972c6fb064690e57940632df54ad39ee71",
        programs: &[
            ("containerd", "bin/containerd"),
            ("containerd-shim-runc-v2", "bin/containerd-shim-runc-v2"),
            ("ctr", "bin/ctr"),
        ],
    },
    Release {
        version: "v2.5.0",
        address: "cli.crossplane.io/stable/{version}/bin/linux_amd64/crossplane",
        sha256: "065dd6b40c9ea5fc71e49900d5c924cc0bec7f58375922ddbde6b402f292347e",
        programs: &[("crossplane", "")],
    },
    Release {
        version: "v0.21.9",
        address: "github.com/google/go-containerregistry/releases/download/{version}/go-containerregistry_Linux_x86_64.tar.gz",
        sha256: "5c16d8ddb971cb1d5e6ed8b1e743da8224414eeba2c2762d8f1a61b2f095699e",
        programs: &[("crane", "crane")],
    },
];

/// After this time without an answer, the server counts as down.
const ANSWER: Duration = Duration::from_secs(30);
/// The largest file has 100 MB, so a connection of one megabit per second is fast enough.
const TRANSFER: Duration = Duration::from_mins(15);

impl Release {
    /// The place of the programs in the cache, whether or not they are there yet.
    pub(crate) fn entry(&self, cache: &Cache) -> PathBuf {
        let name = self.programs.first().map_or("", |(name, _)| name);
        let parts = [("release", self.address), ("sha256", self.sha256)];
        let key = key(parts.map(|(name, text)| (name, text.as_bytes())));
        cache.entry("binaries", name, &key)
    }

    /// Fetches the file into the folder, checks its digest, and leaves its programs in the folder.
    pub(crate) fn fetch(&self, origin: &Origin, folder: &Path, step: &Step) -> Result<(), Error> {
        let url = self.url(origin);
        let fetched = folder.join("fetched");
        let watched = fetched.clone();
        step.follow(move || {
            let bytes = std::fs::metadata(&watched).ok()?.len();
            Some(format!("{} MB", bytes / 1_000_000))
        });
        let found = download(&url, &fetched)?;
        if found != self.sha256 {
            std::fs::remove_file(&fetched).map_err(cache::Error::io("remove", &fetched))?;
            return Err(Error::Digest {
                url,
                expected: self.sha256,
                found,
            });
        }
        self.unpack(&url, &fetched, folder)
    }

    fn url(&self, origin: &Origin) -> String {
        let start = match origin {
            Origin::Release { mirror: Some(url) } => url,
            _ => "https://",
        };
        format!("{start}{}", self.filled_in(self.address))
    }

    fn filled_in(&self, text: &str) -> String {
        text.replace("{version}", self.version)
            .replace("{number}", self.version.trim_start_matches('v'))
    }

    fn unpack(&self, url: &str, fetched: &Path, folder: &Path) -> Result<(), Error> {
        for (name, path) in self.programs {
            let program = folder.join(name);
            if path.is_empty() {
                std::fs::rename(fetched, &program).map_err(cache::Error::io("name", &program))?;
                let mode = Permissions::from_mode(0o755);
                std::fs::set_permissions(&program, mode)
                    .map_err(cache::Error::io("set mode of", &program))?;
                continue;
            }
            let path = self.filled_in(path);
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(fetched).arg("-C").arg(folder);
            tar.args(["--no-same-owner", "--transform"])
                .arg(format!("s|^{path}$|{name}|"))
                .arg(&path);
            command::output(&mut tar).map_err(|source| Error::Unpack {
                url: url.to_owned(),
                source,
            })?;
        }
        if fetched.exists() {
            std::fs::remove_file(fetched).map_err(cache::Error::io("remove", fetched))?;
        }
        Ok(())
    }
}

/// Writes the file at `url` to `to`. Returns its SHA-256 in hexadecimal digits.
fn download(url: &str, to: &Path) -> Result<String, Error> {
    let answer = client().get(url).call().map_err(|source| Error::Fetch {
        url: url.to_owned(),
        source: Box::new(source),
    })?;
    let mut body = answer.into_body().into_reader();
    let broken = |source| Error::Transfer {
        url: url.to_owned(),
        source,
    };
    let mut file = File::create(to).map_err(broken)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        if interrupt::requested() {
            return Err(Error::Interrupted);
        }
        let read = body.read(&mut buffer).map_err(broken)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        digest.update(bytes);
        file.write_all(bytes).map_err(broken)?;
    }
    Ok(hexadecimal(&digest.finalize()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn client() -> Agent {
    let authorities = rustls_native_certs::load_native_certs().certs;
    let authorities = authorities
        .iter()
        .map(|one| Certificate::from_der(one).to_owned());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(authorities.collect())))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let config = Agent::config_builder()
        .timeout_connect(Some(ANSWER))
        .timeout_recv_response(Some(ANSWER))
        .timeout_recv_body(Some(TRANSFER))
        .tls_config(tls)
        .build();
    Agent::new_with_config(config)
}

#[cfg(test)]
#[path = "releases_tests.rs"]
mod tests;
