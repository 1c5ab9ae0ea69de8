//! The default storage class.

use local_cluster::Cluster;
use serde_json::{Value, json};

use crate::pods::{apply, eventually, kubectl, push_probe};

/// A pod that does not run as root writes a file, and a second pod reads it. The data is deleted
/// with the volume claim.
pub(crate) fn a_volume_outlives_its_pod_and_ends_with_its_claim(cluster: &Cluster) {
    let image = push_probe(cluster);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "home"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    apply(cluster, &claim.to_string());
    let bound = "--for=jsonpath={.status.phase}=Bound";
    kubectl(cluster, &["wait", bound, "pvc/home", "--timeout=60s"]);
    let volume = kubectl(
        cluster,
        &["get", "pvc", "home", "-o", "jsonpath={.spec.volumeName}"],
    );
    let folder = cluster.state().data("volumes").join(volume);

    run(cluster, &image);
    probe(cluster, &["write", "/home/dev/file", "kept"]);
    // The next pod has the same name, so this pod must be gone before.
    kubectl(cluster, &["delete", "pod", "resident", "--grace-period=1"]);
    run(cluster, &image);
    assert_eq!(probe(cluster, &["read", "/home/dev/file"]), "kept");
    assert!(folder.join("file").exists(), "{}", folder.display());

    kubectl(cluster, &["delete", "pod", "resident", "--grace-period=1"]);
    kubectl(cluster, &["delete", "pvc", "home"]);
    eventually("the folder of a deleted claim is still there", || {
        !folder.exists()
    });
}

fn run(cluster: &Cluster, image: &str) {
    apply(cluster, &resident(image).to_string());
    let arguments = ["--for=condition=Ready", "pod/resident", "--timeout=60s"];
    kubectl(cluster, &[&["wait"], arguments.as_slice()].concat());
}

fn resident(image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "resident"},
        "spec": {
            "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000},
            "containers": [{
                "name": "probe", "image": image, "args": ["serve"],
                "volumeMounts": [{"name": "home", "mountPath": "/home/dev"}],
            }],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}],
        },
    })
}

fn probe(cluster: &Cluster, arguments: &[&str]) -> String {
    let exec = ["exec", "resident", "--", "/probe"];
    kubectl(cluster, &[exec.as_slice(), arguments].concat())
}
