//! Network policies: which pods may reach which.

use local_cluster::Cluster;
use serde_json::{Value, json};

use crate::pods::{apply, command, eventually, kubectl, push_probe};

const NAMESPACE: &str = "guarded";

/// Two pods with the same label, "members", are in a namespace whose policy first admits no
/// traffic. A third pod, the "stranger", is in another namespace.
pub(crate) fn pods_reach_each_other_only_as_the_policies_say(cluster: &Cluster) {
    let image = push_probe(cluster);
    let gang = json!({"app": "gang"});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        pod(NAMESPACE, "first", &gang, &image),
        pod(NAMESPACE, "second", &gang, &image),
        pod("default", "stranger", &json!({"app": "stranger"}), &image),
        {
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "gang", "namespace": NAMESPACE},
            "spec": {"selector": gang, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    ]});
    apply(cluster, &objects.to_string());
    for (namespace, name) in [
        (NAMESPACE, "pod/first"),
        (NAMESPACE, "pod/second"),
        ("default", "pod/stranger"),
    ] {
        let ready = ["--for=condition=Ready", name, "--timeout=60s"];
        kubectl(
            cluster,
            &[&["-n", namespace, "wait"], ready.as_slice()].concat(),
        );
    }
    let first = address(cluster, NAMESPACE, "first");
    let stranger = address(cluster, "default", "stranger");
    let service = format!("http://gang.{NAMESPACE}");
    let outsiders = || reaches(cluster, "default", "stranger", &first);
    let members = || reaches(cluster, NAMESPACE, "second", &first);
    assert!(outsiders() && members(), "without policies, all is allowed");

    policy(cluster, "nobody", &json!({}), &json!([]));
    eventually("a stranger gets in", || !outsiders());
    assert!(!members(), "a member gets in before it is allowed to");
    assert!(!reaches(cluster, "default", "stranger", &service));

    policy(
        cluster,
        "gang",
        &gang,
        &json!([{"from": [selector(&gang)]}]),
    );
    eventually("members do not reach each other", members);
    assert!(reaches(cluster, NAMESPACE, "second", &service));
    assert!(!outsiders(), "the members' policy lets a stranger in");

    let from = json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "podSelector": {"matchLabels": {"app": "stranger"}},
    });
    let admitted = json!([{"from": [from], "ports": [{"port": 8080}]}]);
    policy(cluster, "admitted", &gang, &admitted);
    eventually("an admitted stranger stays outside", outsiders);

    assert!(reaches(cluster, NAMESPACE, "first", &stranger));
    let inside = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "inside", "namespace": NAMESPACE},
        "spec": {
            "podSelector": {}, "policyTypes": ["Egress"],
            "egress": [{"to": [{"podSelector": {}}]}],
        },
    });
    apply(cluster, &inside.to_string());
    eventually("a member gets out", || {
        !reaches(cluster, NAMESPACE, "first", &stranger)
    });
    assert!(
        members(),
        "a member does not reach another of its namespace"
    );

    kubectl(cluster, &["delete", "namespace", NAMESPACE]);
    kubectl(cluster, &["delete", "pod", "stranger", "--grace-period=1"]);
}

fn pod(namespace: &str, name: &str, labels: &Value, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "probe", "image": image, "args": ["serve"]}],
        },
    })
}

fn selector(labels: &Value) -> Value {
    json!({"podSelector": {"matchLabels": labels}})
}

fn policy(cluster: &Cluster, name: &str, labels: &Value, ingress: &Value) {
    let mut spec = selector(labels);
    spec["policyTypes"] = json!(["Ingress"]);
    spec["ingress"] = ingress.clone();
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    });
    apply(cluster, &policy.to_string());
}

fn address(cluster: &Cluster, namespace: &str, pod: &str) -> String {
    let path = "jsonpath=http://{.status.podIP}:8080";
    kubectl(cluster, &["-n", namespace, "get", "pod", pod, "-o", path])
}

fn reaches(cluster: &Cluster, namespace: &str, pod: &str, url: &str) -> bool {
    let exec = ["-n", namespace, "exec", pod, "--", "/probe", "get", url];
    command(cluster).args(exec).output().unwrap().stdout == b"200\n"
}
