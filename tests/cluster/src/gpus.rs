//! GPUs that are not there: the node says that it has them, so that pods which ask
//! for them are scheduled, counted and run.

use serde_json::{Value, json};

use crate::cluster::{self, Cluster};
use crate::command;
use crate::configuration::NODE;
use crate::progress::Progress;

/// The resource that pods ask for.
const RESOURCE: &str = "nvidia.com/gpu";
/// The label with which NVIDIA's feature discovery names the model.
const PRODUCT: &str = "nvidia.com/gpu.product";
const MODEL: &str = "Emulated";

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster lacks a program.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The node cannot be changed.
    #[error(transparent)]
    Command(#[from] command::Error),
}

/// Makes the node advertise so many, and none if `count` is 0. What runs keeps running.
pub fn advertise(cluster: &Cluster, count: u32, progress: &Progress) -> Result<(), Error> {
    let step = progress.begin(&format!("{count} emulated GPUs"));
    patch(cluster, &["--subresource=status"], &status(count))?;
    patch(cluster, &[], &labels(count))?;
    step.end("set");
    Ok(())
}

/// The kubelet keeps capacities that it knows nothing of, and computes what can be
/// allocated from them; that is set too, so that nobody waits for its next turn.
fn status(count: u32) -> Value {
    let advertised = (count > 0).then(|| count.to_string());
    let resources = json!({RESOURCE: advertised});
    json!({"status": {"capacity": resources, "allocatable": resources}})
}

fn labels(count: u32) -> Value {
    json!({"metadata": {"labels": {PRODUCT: (count > 0).then_some(MODEL)}}})
}

fn patch(cluster: &Cluster, arguments: &[&str], patch: &Value) -> Result<(), Error> {
    let mut kubectl = cluster.kubectl()?;
    kubectl
        .args(["patch", "node", NODE, "--type=merge"])
        .args(arguments)
        .args(["--patch", &patch.to_string()]);
    command::output(&mut kubectl)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_gpus_leave_neither_resource_nor_label() {
        // In a merge patch, null removes the key.
        assert_eq!(status(0)["status"]["capacity"], json!({RESOURCE: null}));
        assert_eq!(labels(0)["metadata"]["labels"], json!({PRODUCT: null}));
    }

    #[test]
    fn the_scheduler_need_not_wait_for_the_kubelet_to_count_them() {
        let status = &status(2)["status"];
        assert_eq!(status["capacity"], json!({RESOURCE: "2"}));
        assert_eq!(status["allocatable"], status["capacity"]);
    }
}
