//! Queues and quotas.

use local_cluster::Cluster;
use serde_json::{Value, json};

use crate::command_line::xtask;
use crate::pods::{apply, kubectl, push_probe};

const NAMESPACE: &str = "team";
const ADMITTED: &str = "--for=jsonpath={.status.readyReplicas}=1";

/// The node has one GPU. A workload without a queue runs only in a namespace that Kueue does not
/// manage. Of two workloads with a queue, the second runs when the first is deleted.
pub(crate) fn a_queue_lets_one_workload_after_the_other_run(cluster: &Cluster) {
    let image = push_probe(cluster);
    xtask(&["cluster", "gpus", "1", "--name", cluster.name()]);
    apply(cluster, &queues().to_string());
    let start = |namespace: &str, name: &str, queue: Option<&str>| {
        apply(
            cluster,
            &workload(namespace, name, queue, &image).to_string(),
        );
    };
    let wait = |namespace: &str, condition: &str, object: &str| {
        let arguments = ["wait", condition, object, "--timeout=60s"];
        kubectl(
            cluster,
            &[&["-n", namespace], arguments.as_slice()].concat(),
        );
    };
    let held = "--for=jsonpath={.status.conditions[0].reason}=SchedulingGated";

    start("default", "free", None);
    wait("default", ADMITTED, "statefulset/free");
    kubectl(cluster, &["delete", "statefulset", "free"]);

    start(NAMESPACE, "nameless", None);
    wait(NAMESPACE, "--for=create", "pod/nameless-0");
    wait(NAMESPACE, held, "pod/nameless-0");
    start(NAMESPACE, "nameless", Some("gpus"));
    wait(NAMESPACE, ADMITTED, "statefulset/nameless");

    start(NAMESPACE, "next", Some("gpus"));
    wait(NAMESPACE, "--for=create", "pod/next-0");
    wait(NAMESPACE, held, "pod/next-0");
    let queue = format!("namespaces/{NAMESPACE}/localqueues/gpus/pendingworkloads");
    let path = format!("/apis/visibility.kueue.x-k8s.io/v1beta2/{queue}");
    let waiting: Value = serde_json::from_str(&kubectl(cluster, &["get", "--raw", &path])).unwrap();
    let owner = &waiting["items"][0]["metadata"]["ownerReferences"][0]["name"];
    assert_eq!(owner, "next", "{waiting:#}");

    kubectl(
        cluster,
        &["-n", NAMESPACE, "delete", "statefulset", "nameless"],
    );
    wait(NAMESPACE, ADMITTED, "statefulset/next");
}

fn queues() -> Value {
    let managed = json!({"platform.acme.io/gpu-workspaces": "managed"});
    let kueue = "kueue.x-k8s.io/v1beta2";
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": managed},
        },
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "emulated"}},
        {
            "apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "gpus"},
            "spec": {
                "namespaceSelector": {"matchLabels": managed},
                "resourceGroups": [{
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [{"name": "emulated", "resources": [
                        {"name": "nvidia.com/gpu", "nominalQuota": "1"},
                    ]}],
                }],
            },
        },
        {
            "apiVersion": kueue, "kind": "LocalQueue",
            "metadata": {"name": "gpus", "namespace": NAMESPACE},
            "spec": {"clusterQueue": "gpus"},
        },
    ]})
}

fn workload(namespace: &str, name: &str, queue: Option<&str>, image: &str) -> Value {
    let labels = json!({"app": name});
    let mut metadata = json!({"name": name, "namespace": namespace});
    if let Some(queue) = queue {
        metadata["labels"] = json!({"kueue.x-k8s.io/queue-name": queue});
    }
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata,
        "spec": {
            "serviceName": name, "replicas": 1, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "probe", "image": image, "args": ["serve"],
                        "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    }],
                },
            },
        },
    })
}
