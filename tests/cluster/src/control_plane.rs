//! A Kubernetes API server and its etcd, and nothing else, for programs that need objects, watches
//! and status but no pods. It needs neither namespaces nor root.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::binaries::{self, Binaries};
use crate::cache::{self, Cache};
use crate::certificates::{self, Certificates};
use crate::command::{self, tail};
use crate::network::{Addresses, SERVICES};
use crate::plan::Probe;
use crate::probe;
use crate::progress::Progress;
use crate::wait::{self, Deadline};

/// The time limit for what takes a moment on an idle machine, so that it also fits a busy one.
const PATIENCE: Duration = Duration::from_mins(2);
/// The interval between two probes.
const LOOK: Duration = Duration::from_millis(100);
/// The number of lines of a log that are shown.
const LINES: usize = 20;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A binary cannot be built.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// The certificates cannot be made.
    #[error(transparent)]
    Certificates(#[from] certificates::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// A program does not start.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// No free port was found.
    #[error("find a free port: {0}")]
    Port(std::io::Error),
    /// A program did not become ready in time.
    #[error("{source}\n  its log ends with:\n{log}")]
    Wait {
        /// The condition, and what was seen instead.
        source: wait::Error,
        /// The last lines of the program's log.
        log: String,
    },
}

/// A running API server. Dropping it ends the API server and etcd; the next start in its folder
/// deletes the data.
#[derive(Debug)]
pub struct ControlPlane {
    /// The processes, in the order in which they are ended.
    _processes: [Process; 2],
    kubeconfig: PathBuf,
}

#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ControlPlane {
    /// Builds missing programs, starts etcd and the API server, and waits until both are ready.
    /// Their data and logs are in `folder`; its earlier contents are deleted. `more` are further
    /// arguments of the API server, by name.
    pub fn start(
        cache: &Cache,
        folder: &Path,
        more: &[(String, String)],
        progress: &Progress,
    ) -> Result<Self, Error> {
        let binaries = binaries::ensure(cache, &["etcd", "kube-apiserver"], progress)?;
        let step = progress.begin("etcd and kube-apiserver");
        cache::remove_folder(folder)?;
        cache::create_folder(folder)?;
        let certificates = Certificates::in_folder(folder.join("certificates"));
        // The serving certificate also names the loopback address, and only that one is used here.
        certificates.create(Addresses::new(0))?;
        let ports = free_ports()?;
        let starting = Starting {
            folder,
            certificates: &certificates,
            binaries: &binaries,
            ports,
            more,
        };
        let etcd = starting.etcd()?;
        let apiserver = starting.apiserver()?;
        let kubeconfig = starting.kubeconfig()?;
        step.end("ready");
        Ok(Self {
            _processes: [apiserver, etcd],
            kubeconfig,
        })
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

struct Starting<'a> {
    folder: &'a Path,
    certificates: &'a Certificates,
    binaries: &'a Binaries,
    /// The ports of etcd for clients, of etcd for peers, and of the API server.
    ports: [u16; 3],
    /// Further arguments of the API server.
    more: &'a [(String, String)],
}

impl Starting<'_> {
    fn etcd(&self) -> Result<Process, Error> {
        let [clients, peers, _] = self.ports;
        let client_url = format!("http://127.0.0.1:{clients}");
        let arguments = [
            ("data-dir", text(&self.folder.join("etcd"))),
            ("listen-client-urls", client_url.clone()),
            ("advertise-client-urls", client_url.clone()),
            ("listen-peer-urls", format!("http://127.0.0.1:{peers}")),
            ("log-level", "warn".to_owned()),
            ("unsafe-no-fsync", "true".to_owned()),
        ];
        let probe = Probe::Http {
            url: format!("{client_url}/health"),
            authority: None,
        };
        self.run("etcd", &arguments, &probe)
    }

    fn apiserver(&self) -> Result<Process, Error> {
        let [clients, _, port] = self.ports;
        let serving = self.certificates.files("serving");
        let (signing_key, verifying_key) = self.certificates.service_account();
        let loopback = Ipv4Addr::LOCALHOST.to_string();
        let mut arguments = vec![
            ("etcd-servers", format!("http://127.0.0.1:{clients}")),
            ("bind-address", loopback.clone()),
            ("advertise-address", loopback),
            ("secure-port", port.to_string()),
            // No client uses a Service here, and Endpoints may not contain a loopback address.
            ("endpoint-reconciler-type", "none".to_owned()),
            ("authorization-mode", "RBAC".to_owned()),
            // No controller runs here, so no namespace gets a default ServiceAccount. This plugin
            // would refuse pods without one.
            ("disable-admission-plugins", "ServiceAccount".to_owned()),
            ("service-cluster-ip-range", SERVICES.to_owned()),
            ("client-ca-file", text(&self.certificates.authority())),
            ("tls-cert-file", text(&serving.certificate)),
            ("tls-private-key-file", text(&serving.key)),
            (
                "service-account-issuer",
                "https://kubernetes.default.svc".to_owned(),
            ),
            ("service-account-key-file", text(&verifying_key)),
            ("service-account-signing-key-file", text(&signing_key)),
        ];
        let more = self.more.iter();
        arguments.extend(more.map(|(name, value)| (name.as_str(), value.clone())));
        let probe = Probe::Http {
            url: format!("https://127.0.0.1:{port}/readyz"),
            authority: Some(self.certificates.authority()),
        };
        self.run("kube-apiserver", &arguments, &probe)
    }

    fn run(
        &self,
        name: &'static str,
        arguments: &[(&str, String)],
        probe: &Probe,
    ) -> Result<Process, Error> {
        let path = self.folder.join(format!("{name}.log"));
        let log = File::create(&path).map_err(cache::Error::io("create", &path))?;
        let copy = log.try_clone().map_err(cache::Error::io("open", &path))?;
        let mut command = Command::new(self.binaries.path(name)?);
        command
            .args(
                arguments
                    .iter()
                    .map(|(name, value)| format!("--{name}={value}")),
            )
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(copy);
        let process = Process(command.spawn().map_err(|source| command::Error::Start {
            program: command::describe(&command),
            source,
        })?);
        let what = format!("{name} to be ready");
        wait::until(&what, Deadline::after(PATIENCE), LOOK, || {
            probe::ready(probe)
        })
        .map_err(|source| Error::Wait {
            source,
            log: tail(&path, LINES),
        })?;
        Ok(process)
    }

    fn kubeconfig(&self) -> Result<PathBuf, Error> {
        let [.., port] = self.ports;
        let admin = self.certificates.files("admin");
        let name = "control-plane";
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": self.certificates.authority(),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate": admin.certificate,
                "client-key": admin.key,
            }}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
            "current-context": name,
        });
        let path = self.folder.join("kubeconfig");
        cache::write(&path, kubeconfig.to_string())?;
        Ok(path)
    }
}

/// Finds three free ports. All three are held at the same time, so that they differ.
fn free_ports() -> Result<[u16; 3], Error> {
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::Port);
    let held = [free()?, free()?, free()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr().map_err(Error::Port)?.port();
    }
    Ok(ports)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
