//! Kueue in the cluster: its image and its own Helm chart, both made from the
//! source of the pinned version.

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
/// The label with which a namespace puts its pods under Kueue's rule, and its value.
pub const MANAGED: (&str, &str) = ("platform.acme.io/gpu-workspaces", "managed");
/// What is queued there.
const FRAMEWORKS: &[&str] = &["batch/job", "pod", "deployment", "statefulset"];
/// For how long an admitted workload may have pods that are not ready before it is
/// evicted. Kueue's default of half an hour evicts whoever pulls a large image over
/// a slow line; the wait for a person's first pull is not Kueue's to end.
const PODS_READY: &str = "24h";

const BINARY: &str = "kueue";
/// For an image of 80 MB, its certificates and its caches on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_millis(500);

/// What can go wrong while it is installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be built, or its source not be found.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The cluster lacks a program.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// A program failed.
    #[error("{source}\n  what `kubectl -n kueue-system get pods` says:\n{pods}")]
    Install {
        /// Which, and how.
        source: command::Error,
        /// Kueue's pods.
        pods: String,
    },
    /// A program failed before anything was installed.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// Its webhooks do not answer.
    #[error("{0}\n  see `kubectl -n kueue-system logs deployment/kueue-controller-manager`")]
    Webhooks(#[from] wait::Error),
}

/// Builds Kueue unless it is built, installs it or brings what is installed in line,
/// and waits until its webhooks answer.
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
            // The chart calls it by this name, too.
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
                // The maker's image names this user; the chart demands one that is not root.
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
        // The only replica need not be elected, and starts the sooner.
        "leaderElection": {"leaderElect": false},
        "clientConnection": {"qps": 300, "burst": 500},
        // Without a queue nothing runs, so that leaving the label out is no way around
        // quotas; only namespaces that say so are concerned.
        "manageJobsWithoutQueueName": true,
        "managedJobsNamespaceSelector": {"matchLabels": {label: value}},
        "waitForPodsReady": {"timeout": PODS_READY},
        "integrations": {"frameworks": FRAMEWORKS},
    })
}

/// A queue that could be made is one that the webhooks have seen.
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
        // A StatefulSet's pods are held back by the integration of pods.
        for framework in ["pod", "statefulset"] {
            assert!(FRAMEWORKS.contains(&framework), "{framework}");
        }
    }
}
