//! Emulated GPUs. The node advertises GPUs that it does not have, so that pods that ask for GPUs
//! are scheduled, counted and started.

use serde_json::{Value, json};

use crate::cluster::{self, Cluster};
use crate::command;
use crate::configuration::NODE;
use crate::progress::Progress;

/// The extended resource that pods request.
const RESOURCE: &str = "nvidia.com/gpu";
/// The label in which NVIDIA's feature discovery writes the GPU's model.
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

/// Makes the node advertise `count` GPUs; 0 removes the resource. Running pods keep running.
pub fn advertise(cluster: &Cluster, count: u32, progress: &Progress) -> Result<(), Error> {
    let step = progress.begin(&format!("{count} emulated GPUs"));
    patch(cluster, &["--subresource=status"], &status(count))?;
    patch(cluster, &[], &labels(count))?;
    step.end("set");
    Ok(())
}

/// The patch of the node's status. The kubelet keeps a capacity that it does not know, and computes
/// `allocatable` from it. The patch sets `allocatable` as well, so that nothing waits for the
/// kubelet's next update.
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
