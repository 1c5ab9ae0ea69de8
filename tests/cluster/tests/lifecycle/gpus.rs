//! Emulated GPUs.

use local_cluster::Cluster;
use serde_json::json;

use crate::command_line::xtask;
use crate::pods::{apply, kubectl, push_probe};

/// A pod that requests GPUs is unschedulable until the node advertises them. Then it runs.
pub(crate) fn pods_that_ask_for_emulated_gpus_run(cluster: &Cluster) {
    let image = push_probe(cluster);
    let name = ["--name", cluster.name()];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "trainer"},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "Emulated"},
            "containers": [{
                "name": "probe", "image": image, "args": ["serve"],
                "resources": {"limits": {"nvidia.com/gpu": "2"}},
            }],
        },
    });
    apply(cluster, &pod.to_string());
    let wait = |condition: &str| {
        kubectl(
            cluster,
            &["wait", condition, "pod/trainer", "--timeout=60s"],
        );
    };
    wait("--for=jsonpath={.status.conditions[0].reason}=Unschedulable");
    xtask(&[&["cluster", "gpus", "2"], name.as_slice()].concat());
    wait("--for=condition=Ready");

    kubectl(cluster, &["delete", "pod", "trainer", "--grace-period=1"]);
    xtask(&[&["cluster", "gpus", "0"], name.as_slice()].concat());
    let node = kubectl(cluster, &["get", "node", "node", "-o", "json"]);
    assert!(!node.contains("nvidia.com"), "{node}");
}
