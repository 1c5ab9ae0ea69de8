//! The login of the demo. It needs machines, a key pair, an SSH rule for this host, and the
//! machine's host keys.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, machines};
use serde_json::json;

use super::{CLAIM, LOOK, NAMESPACE, claim};
use crate::package::platform::Platform;
use crate::process::output;
use crate::standalone::{self, Shape};
use crate::target::Resolved;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The claim's owner in the example's catalogue.
const OWNER: &str = "alice";
const USER: &str = "developer";
/// The time limit for a login to a workspace that is Ready.
const PATIENCE: Duration = Duration::from_mins(1);
/// The command that the demo runs.
const SHOWN: &str = r#"python -c 'import cv2, numpy, torch
two = 2 * numpy.eye(2)
print("OpenCV", cv2.__version__, cv2.gemm(two, two, 1, None, 0).tolist())
print("PyTorch", torch.__version__, (torch.tensor(two) @ torch.tensor(two)).tolist())'"#;

pub(crate) struct Login {
    cluster: Cluster,
    folder: PathBuf,
}

impl Login {
    /// Makes the cluster's emulator boot machines, and gives the owner a key. The private key stays
    /// in the cluster's state folder.
    pub(crate) fn prepare(name: &str, target: &Resolved, progress: &Progress) -> Outcome<Self> {
        let (cache, cluster) = (Cache::from_environment()?, Cluster::open(name)?);
        let pytorch = machines::provide(&cache, &cluster, progress)?;
        let folder = cluster.state().root().join("demo");
        fs::create_dir_all(&folder)?;
        let login = Self { cluster, folder };
        let key = login.public_key()?;
        // The image is changed only in the catalogue of this cluster, because the example names
        // AWS's own image.
        let image = json!({
            "id": machines::IMAGE,
            "description": "Emulated GPU image that boots",
            "pytorch": {"version": pytorch, "python": "/opt/pytorch/bin/python3"},
        });
        let patch = json!([
            {"op": "replace", "path": "/data/images/us-east-1/default", "value": image},
            {"op": "add", "path": format!("/data/owners/{OWNER}/publicKeys/-"), "value": key},
        ]);
        output(target.kubectl().args([
            "patch",
            "environmentconfig/gpu-workspaces",
            "--type=json",
            "--patch",
            &patch.to_string(),
        ]))?;
        Ok(login)
    }

    /// Lets this host connect. Without a CIDR in the claim, no host can. The limits of this cluster
    /// allow it, too.
    pub(crate) fn admit_host(&self, target: &Resolved) -> Outcome<()> {
        let host = format!("{}/32", self.cluster.addresses().host());
        allow(target, &host)?;
        let patch = json!({"spec": {"parameters": {"ssh": {"allowedCidrs": [host]}}}});
        output(target.kubectl().args([
            "patch",
            "-n",
            NAMESPACE,
            CLAIM,
            "--type=merge",
            "--patch",
            &patch.to_string(),
        ]))?;
        Ok(())
    }

    /// Logs in to the workspace, which is Ready. Returns the command that logs in, and the output of
    /// the example command.
    pub(crate) fn log_in(
        &self,
        target: &Resolved,
        progress: &Progress,
    ) -> Outcome<(String, String)> {
        let began = Instant::now();
        let step = progress.begin("log in");
        let address = status(target, "publicIp")?;
        let known = self.folder.join("known_hosts");
        let keys = host_keys(target, &address)?;
        fs::write(&known, keys)?;
        let options = [
            "-i".to_owned(),
            self.key().display().to_string(),
            "-o".to_owned(),
            format!("UserKnownHostsFile={}", known.display()),
        ];
        let place = format!("{USER}@{address}");
        let ssh = |script: &str| {
            let mut ssh = Command::new("ssh");
            ssh.args(&options)
                .args(["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"])
                .args(["-o", "ConnectTimeout=5", &place, script]);
            output(&mut ssh)
        };
        let shown = within(PATIENCE, || ssh(SHOWN))?;
        step.end(&format!("after {:.1} s", began.elapsed().as_secs_f32()));
        Ok((format!("ssh {} {place}", options.join(" ")), shown))
    }

    /// The folder of the demo's keys and settings.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The local cluster.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The owner's private key.
    pub(crate) fn key(&self) -> PathBuf {
        self.folder.join("key")
    }

    /// Puts devctl beside the cluster's other programs.
    pub(crate) fn install_devctl(&self, progress: &Progress) -> Outcome<()> {
        let path = self.cluster.state().bin().join("devctl");
        let shape = Shape { release: false };
        standalone::write("devctl", &shape, Platform::host(), &path, progress)?;
        Ok(())
    }

    /// The demo's public key. The first demo on a cluster makes the key pair.
    pub(crate) fn public_key(&self) -> Outcome<String> {
        let key = self.key();
        if !key.exists() {
            // ssh-keygen makes the private key readable for its owner only.
            let mut keygen = Command::new("ssh-keygen");
            keygen
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "demo", "-f"])
                .arg(&key);
            output(&mut keygen)?;
        }
        let public = fs::read_to_string(key.with_extension("pub"))?;
        Ok(public.trim().to_owned())
    }
}

/// Adds a network to those that the limits of this cluster let connect to workspaces.
pub(super) fn allow(target: &Resolved, network: &str) -> Outcome<()> {
    let allowed = json!([{"op": "add", "path": "/data/sshCidrCeiling/-", "value": network}]);
    output(target.kubectl().args([
        "patch",
        "environmentconfig/gpu-workspace-limits",
        "--type=json",
        "--patch",
        &allowed.to_string(),
    ]))?;
    Ok(())
}

/// The host keys of the claim's status as `known_hosts` lines.
fn host_keys(target: &Resolved, address: &str) -> Outcome<String> {
    let path = r#"jsonpath={range .status.hostKeys[*]}{@}{"\n"}{end}"#;
    let reported = claim(target, path)?;
    if reported.is_empty() {
        return Err(format!("{CLAIM} is Ready and its status.hostKeys is empty").into());
    }
    let lines: Vec<_> = reported
        .lines()
        .map(|key| format!("{address} {key}"))
        .collect();
    Ok(lines.join("\n") + "\n")
}

/// A field of the claim's status; empty if the status does not have it.
fn status(target: &Resolved, field: &str) -> Outcome<String> {
    claim(target, &format!("jsonpath={{.status.{field}}}"))
}

/// Tries until the attempt succeeds. After the time limit, returns the last error.
pub(super) fn within<T>(patience: Duration, attempt: impl Fn() -> Outcome<T>) -> Outcome<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(error) if began.elapsed() > patience => return Err(error),
            Err(_) => std::thread::sleep(LOOK),
            done => return done,
        }
    }
}
