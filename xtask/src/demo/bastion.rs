//! The bastion of the demo: a person with a key, and with no credential of the cluster, gets a machine and
//! works on it.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use local_cluster::progress::{Progress, Step};
use serde_json::json;

use super::login::{Login, allow, within};
use super::policy::change;
use crate::process::output;
use crate::target::Resolved;
use crate::workspace_image;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The person of `examples/users`.
const PERSON: &str = "dave";
const WORKSPACE: &str = "my-dev";
const NAMESPACE: &str = "gpu-bastion";
/// The port of sshd in the pods.
const PORT: u16 = 2222;
/// How long the bastion may take to know a person.
const PATIENCE: Duration = Duration::from_mins(1);
/// What runs in the workspace. It has no quotes, so a person can type the line as the demo shows it.
const SHOWN: &str = "ssh my-dev -- python --version";

/// The bastion, and the configuration of ssh with which the person reaches it.
pub(super) struct Bastion<'a> {
    target: &'a Resolved,
    config: PathBuf,
}

impl<'a> Bastion<'a> {
    /// Installs two replicas, lets workspaces admit them, and makes the person.
    pub(super) fn install(
        target: &'a Resolved,
        login: &Login,
        progress: &Progress,
    ) -> Outcome<Self> {
        let cluster = login.cluster();
        let image = workspace_image::bastion_for(cluster, progress)?;
        let step = progress.begin("start the bastion");
        target.apply_text(&manifests(&image)?)?;
        target.apply_file("bastion/manifests/constrained-impersonation.yaml")?;
        change(target, "devusers", |input| {
            input["access"] = json!("Bastion");
        })?;
        let mut rollout = target.kubectl();
        rollout.args([
            "rollout",
            "status",
            "statefulset/gpu-bastion",
            "--timeout=180s",
        ]);
        output(rollout.args(["-n", NAMESPACE]))?;
        // The emulator's machines see packets of pods with the address of the machines' gateway.
        let network = format!("{}/32", cluster.addresses().machines_gateway());
        allow(target, &network)?;
        let authority = public_key(target, "gpu-bastion-user-authority", "user_authority")?;
        change(target, "gpudevworkspaces", |input| {
            let labels = json!({"app.kubernetes.io/name": "gpu-bastion"});
            input["bastion"] =
                json!({"namespace": NAMESPACE, "podLabels": labels, "cidrs": [network]});
            input["ssh"]["userAuthorities"] = json!([authority]);
        })?;
        let user = json!({
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "DevUser",
            "metadata": {"name": PERSON},
            "spec": {"publicKeys": [login.public_key()?]},
        });
        target.apply_text(&user.to_string())?;
        let mut wait = target.kubectl();
        wait.args(["wait", "--for=condition=Ready", "--timeout=120s"]);
        output(wait.arg(format!("devuser/{PERSON}")))?;
        let bastion = Self {
            target,
            config: login.folder().join("bastion"),
        };
        bastion.configure(&login.key())?;
        within(PATIENCE, || output(bastion.ssh().arg("whoami")))?;
        step.end("");
        Ok(bastion)
    }

    /// Makes a workspace through the bastion, and works in it. Returns what the workspace printed.
    pub(super) fn work(&self, progress: &Progress) -> Outcome<String> {
        let step = progress.begin(&format!(
            "make a workspace as {PERSON}, through the bastion"
        ));
        let began = Instant::now();
        let mut create = self.ssh();
        create.args(["create", WORKSPACE, "--instance-type", "g4dn.xlarge"]);
        followed(create.args(["--region", "us-east-1"]), &step)?;
        let printed = output(self.ssh().arg(SHOWN))?;
        step.end(&format!("after {:.1} s", began.elapsed().as_secs_f32()));
        Ok(printed)
    }

    /// What the person may type next.
    pub(super) fn show(&self, printed: &str) {
        let ssh = format!("ssh -F {} bastion", self.config.display());
        println!("\nThrough the bastion, without a credential of the cluster:\n");
        println!("  {ssh} {SHOWN}\n\nIt said: {printed}\n\nTry next:");
        println!("  {ssh}    # a prompt; `help` lists the commands");
        println!("  {ssh} list");
        println!("  {ssh} delete {WORKSPACE} --yes    # its machine goes with it");
        println!(
            "  kubectl exec -n {NAMESPACE} gpu-bastion-0 -c broker -- \\\n    /usr/bin/gpu-bastion \
             search --user {PERSON} /var/lib/gpu-bastion/audit/audit.jsonl"
        );
    }

    fn configure(&self, key: &Path) -> Outcome<()> {
        let mut address = self.target.kubectl();
        address.args(["get", "pod", "gpu-bastion-0", "-n", NAMESPACE]);
        let address = output(address.args(["-o", "jsonpath={.status.podIP}"]))?;
        let known = self.config.with_extension("known_hosts");
        let host_key = public_key(self.target, "gpu-bastion-host-key", "ssh_host_ed25519_key")?;
        fs::write(&known, format!("bastion {host_key}\n"))?;
        let lines = [
            "Host bastion".to_owned(),
            format!("  HostName {address}"),
            format!("  Port {PORT}"),
            format!("  User {PERSON}"),
            format!("  IdentityFile \"{}\"", key.display()),
            "  IdentitiesOnly yes".to_owned(),
            "  HostKeyAlias bastion".to_owned(),
            format!("  UserKnownHostsFile \"{}\"", known.display()),
            "  StrictHostKeyChecking yes".to_owned(),
            "  ConnectTimeout 5".to_owned(),
        ];
        Ok(fs::write(&self.config, lines.join("\n") + "\n")?)
    }

    fn ssh(&self) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(&self.config).arg("bastion");
        ssh
    }
}

/// The manifests with this image. Brokers reach the emulator's machines at their public addresses.
fn manifests(image: &str) -> Outcome<String> {
    let path = crate::root().join("bastion/manifests/bastion.yaml");
    let text = fs::read_to_string(path)?.replace("IMAGE", image);
    let (before, after) = text
        .split_once("args: [broker,")
        .ok_or("bastion/manifests/bastion.yaml starts no broker")?;
    Ok(format!(
        "{before}args: [broker, --instance-address, public,{after}"
    ))
}

/// The public key of a Secret that the bastion made. The private one stays there.
fn public_key(target: &Resolved, secret: &str, key: &str) -> Outcome<String> {
    let template = format!("go-template={{{{index .data \"{key}.pub\" | base64decode}}}}");
    let mut get = target.kubectl();
    let public = output(get.args(["get", "secret", secret, "-n", NAMESPACE, "-o", &template]))?;
    let mut words = public.split_whitespace();
    match (words.next(), words.next()) {
        (Some(kind), Some(key)) => Ok(format!("{kind} {key}")),
        _ => Err(format!("the Secret {secret} has no public key").into()),
    }
}

/// Runs a command to its end. Its progress is the step's.
fn followed(command: &mut Command, step: &Step) -> Outcome<()> {
    let mut running = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut said = Vec::new();
    if let Some(errors) = running.stderr.take() {
        for line in BufReader::new(errors).lines() {
            let line = line?;
            step.note(&format!("  {line}"));
            said.push(line);
        }
    }
    let status = running.wait()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {status}: {}", said.join("\n")).into())
}
