//! Kueue in the cluster. Its image and its own Helm chart are made from the source of the pinned
//! version.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::binaries;
use crate::cache::{self, Cache};
use crate::cluster::{self, Cluster};
use crate::command;
use crate::helm;
use crate::images;
use crate::progress::Progress;
use crate::wait::{self, Deadline};

/// The namespace of Kueue itself.
pub const NAMESPACE: &str = "kueue-system";
/// The label, and its value, of a namespace whose pods Kueue manages.
pub const MANAGED: (&str, &str) = ("platform.acme.io/gpu-workspaces", "managed");
/// The kinds of workloads that Kueue manages.
const FRAMEWORKS: &[&str] = &["batch/job", "pod", "deployment", "statefulset"];
/// How long pods of an admitted workload may be unready before Kueue evicts the workload. After
/// Kueue's default of half an hour, Kueue would evict a workload that pulls a large image over a
/// slow line. A user's first pull may take longer than that.
const PODS_READY: &str = "24h";

const BINARY: &str = "kueue";
/// How long to wait for the webhooks. Kueue must pull an image of 80 MB, make certificates and fill
/// its caches, and the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_millis(500);

/// What can go wrong during the installation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be built, or its source cannot be found.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The cluster lacks a program.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// Helm failed.
    #[error("{source}\n  what `kubectl -n kueue-system get pods` says:\n{pods}")]
    Install {
        /// Helm's error.
        source: command::Error,
        /// The list of Kueue's pods.
        pods: String,
    },
    /// Another program failed.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// Kueue's webhooks do not answer.
    #[error("{0}\n  see `kubectl -n kueue-system logs deployment/kueue-controller-manager`")]
    Webhooks(#[from] wait::Error),
}

/// Builds Kueue if necessary, installs or updates it, and waits until its webhooks answer.
pub fn install(cache: &Cache, cluster: &Cluster, progress: &Progress) -> Result<(), Error> {
    let version = binaries::version(BINARY)?;
    let built = binaries::ensure(cache, &[BINARY], progress)?;
    let step = progress.begin("image of Kueue");
    push_image(cluster, built.path(BINARY)?, &version)?;
    step.end("pushed");
    let step = progress.begin("Kueue");
    run_helm(cluster, &version)?;
    step.end("ready");
    let step = progress.begin("webhooks of Kueue");
    await_webhooks(cluster)?;
    step.end("answer");
    Ok(())
}

fn repository(cluster: &Cluster) -> String {
    format!("{}/kueue/kueue", cluster.registry())
}

fn push_image(cluster: &Cluster, binary: &Path, version: &str) -> Result<(), Error> {
    let scratch = cluster.state().temporary().join("kueue");
    let (root, layer) = (scratch.join("root"), scratch.join("layer.tar.gz"));
    cache::create_folder(&root)?;
    let program = root.join("manager");
    std::fs::copy(binary, &program).map_err(cache::Error::io("write", &program))?;
    images::pack(&root, &layer)?;
    images::push(
        &cluster.program("crane")?,
        &images::Image {
            reference: &format!("{}:{version}", repository(cluster)),
            layers: &[layer],
            // The chart also uses this name.
            entrypoint: "/manager",
            environment: &[],
            user: None,
        },
    )?;
    Ok(cache::remove_folder(&scratch)?)
}

fn run_helm(cluster: &Cluster, version: &str) -> Result<(), Error> {
    let chart = binaries::source(BINARY)?.join("charts/kueue");
    let values = cluster.state().configuration().join("kueue-values.json");
    cache::write(&values, format!("{:#}\n", chart_values(cluster, version)))?;
    let mut helm = helm::call(&cluster.program("helm")?, cluster.state());
    helm.args(["upgrade", "--install", "kueue"])
        .arg(chart)
        .args(["--namespace", NAMESPACE, "--create-namespace", "--values"])
        .arg(values)
        .args(["--wait", "--timeout", "5m"]);
    command::logged(&mut helm, &cluster.log("helm-kueue")).map_err(|source| Error::Install {
        source,
        pods: pods(cluster),
    })
}

fn chart_values(cluster: &Cluster, version: &str) -> Value {
    json!({
        // A cluster with a single developer needs neither replicas nor reservations.
        "controllerManager": {
            "manager": {
                "image": {
                    "repository": repository(cluster), "tag": version,
                    "pullPolicy": "IfNotPresent",
                },
                "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
                // The upstream image names this user, and the chart demands a user that is not
                // root.
                "podSecurityContext": {"runAsUser": 65532},
            },
            "readinessProbe": {"initialDelaySeconds": 1, "periodSeconds": 1},
        },
        "managerConfig": {"controllerManagerConfigYaml": configuration().to_string()},
    })
}

/// Kueue's own configuration, which it reads as YAML.
fn configuration() -> Value {
    let (label, value) = MANAGED;
    json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        // There is one replica, so no election is necessary; without it Kueue starts sooner.
        "leaderElection": {"leaderElect": false},
        "clientConnection": {"qps": 300, "burst": 500},
        // Kueue does not start a workload without the queue label, because a user could otherwise
        // avoid the quota. This holds only in namespaces with the label below.
        "manageJobsWithoutQueueName": true,
        "managedJobsNamespaceSelector": {"matchLabels": {label: value}},
        "waitForPodsReady": {"timeout": PODS_READY},
        "integrations": {"frameworks": FRAMEWORKS},
    })
}

/// Waits for Kueue's webhooks. The API server accepts a dry run of a `ResourceFlavor` only if the
/// webhooks answer.
fn await_webhooks(cluster: &Cluster) -> Result<(), Error> {
    let flavor = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
        "metadata": {"name": "webhook-probe"},
    })
    .to_string();
    let mut kubectl = cluster.kubectl()?;
    kubectl.args(["create", "--dry-run=server", "-f", "-"]);
    let deadline = Deadline::after(PATIENCE);
    wait::until("the webhooks of Kueue", deadline, LOOK, || {
        command::output_with_input(&mut kubectl, &flavor).map_err(|error| error.to_string())
    })?;
    Ok(())
}

/// Kueue's pods, as `kubectl` lists them.
fn pods(cluster: &Cluster) -> String {
    let list = || -> Result<String, Error> {
        let mut kubectl = cluster.kubectl()?;
        kubectl.args(["-n", NAMESPACE, "get", "pods", "--request-timeout=5s"]);
        Ok(command::output(&mut kubectl)?)
    };
    list().unwrap_or_else(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_cannot_get_around_the_quotas_by_naming_no_queue() {
        let configuration = configuration();
        assert_eq!(configuration["manageJobsWithoutQueueName"], true);
        assert_eq!(
            configuration["managedJobsNamespaceSelector"],
            json!({"matchLabels": {"platform.acme.io/gpu-workspaces": "managed"}})
        );
        // For a StatefulSet, Kueue's integration of pods holds back the pods.
        for framework in ["pod", "statefulset"] {
            assert!(FRAMEWORKS.contains(&framework), "{framework}");
        }
    }
}
