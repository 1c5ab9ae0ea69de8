//! The login of the demo. It needs machines, a key pair, an SSH rule for this host, and the
//! machine's host keys.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, machines};
use serde_json::json;

use super::{CLAIM, NAMESPACE};
use crate::process::output;
use crate::target::Resolved;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The claim's owner in the example's catalogue.
const OWNER: &str = "alice";
const USER: &str = "developer";
/// The time limit for a machine that boots and installs its software from a folder.
const PATIENCE: Duration = Duration::from_mins(3);
const LOOK: Duration = Duration::from_millis(500);
/// The command that the demo runs. A login shell, as users get it, finds the workspace's Python.
const SHOWN: &str = "bash -lc 'python -c \"import cv2; print(cv2.__version__)\"'";

pub(crate) struct Login {
    cache: Cache,
    cluster: Cluster,
    folder: PathBuf,
}

impl Login {
    /// Makes the cluster's emulator boot machines, and gives the owner a key. The private key stays
    /// in the cluster's state folder.
    pub(crate) fn prepare(name: &str, target: &Resolved, progress: &Progress) -> Outcome<Self> {
        let (cache, cluster) = (Cache::from_environment()?, Cluster::open(name)?);
        machines::provide(&cache, &cluster, progress)?;
        let folder = cluster.state().root().join("demo");
        fs::create_dir_all(&folder)?;
        let login = Self {
            cache,
            cluster,
            folder,
        };
        let key = login.public_key()?;
        // The image is changed only in the catalogue of this cluster, because the example names
        // AWS's own image.
        let image = json!({
            "id": machines::IMAGE,
            "description": "Emulated GPU image that boots, PyTorch 2.12",
            "pytorch": {"version": "2.12.0", "python": "/opt/pytorch/bin/python3"},
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
        let allowed = json!([{"op": "add", "path": "/data/sshCidrCeiling/-", "value": host}]);
        output(target.kubectl().args([
            "patch",
            "environmentconfig/gpu-workspace-limits",
            "--type=json",
            "--patch",
            &allowed.to_string(),
        ]))?;
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

    /// Waits until a login works and the software is installed. Returns the command that logs in,
    /// and the output of the example command.
    pub(crate) fn log_in(
        &self,
        target: &Resolved,
        progress: &Progress,
    ) -> Outcome<(String, String)> {
        let began = Instant::now();
        let step = progress.begin("log in");
        let address = status(target, "publicIp")?;
        let instance = status(target, "instanceId")?;
        let known = self.folder.join("known_hosts");
        let keys = within(PATIENCE, || {
            let keys = self.host_keys(target, &instance, &address)?;
            if keys.is_empty() {
                return Err(format!("{instance} has printed no host keys on its console").into());
            }
            Ok(keys)
        })?;
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
        within(PATIENCE, || ssh("true"))?;
        step.end(&format!("after {:.1} s", began.elapsed().as_secs_f32()));
        let step = progress.begin("software of the workspace");
        ssh("cloud-init status --wait >/dev/null")?;
        let shown = ssh(SHOWN)?;
        step.end(&format!("after {:.1} s", began.elapsed().as_secs_f32()));
        Ok((format!("ssh {} {place}", options.join(" ")), shown))
    }

    fn key(&self) -> PathBuf {
        self.folder.join("key")
    }

    /// The demo's public key. The first demo on a cluster makes the key pair.
    fn public_key(&self) -> Outcome<String> {
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

    /// The host keys as `known_hosts` lines, from the claim's status or else from the instance's
    /// console.
    fn host_keys(&self, target: &Resolved, instance: &str, address: &str) -> Outcome<String> {
        let path = r#"jsonpath={range .status.hostKeys[*]}{@}{"\n"}{end}"#;
        let reported = claim(target, path)?;
        if reported.is_empty() {
            let (cache, cluster) = (&self.cache, &self.cluster);
            return Ok(machines::host_keys(cache, cluster, instance, address)?);
        }
        let lines: Vec<_> = reported
            .lines()
            .map(|key| format!("{address} {key}"))
            .collect();
        Ok(lines.join("\n") + "\n")
    }
}

/// A field of the claim's status; empty if the status does not have it.
fn status(target: &Resolved, field: &str) -> Outcome<String> {
    claim(target, &format!("jsonpath={{.status.{field}}}"))
}

fn claim(target: &Resolved, path: &str) -> Outcome<String> {
    let mut get = target.kubectl();
    output(get.args(["get", "-n", NAMESPACE, CLAIM, "-o", path]))
}

/// Tries until the attempt succeeds. After the time limit, returns the last error.
fn within<T>(patience: Duration, attempt: impl Fn() -> Outcome<T>) -> Outcome<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(error) if began.elapsed() > patience => return Err(error),
            Err(_) => std::thread::sleep(LOOK),
            done => return done,
        }
    }
}
