//! What a pod must be able to do, and who must be able to reach it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, binaries, images};
use serde_json::json;

/// Runs a pod that serves HTTP. Tests its logs, exec, DNS, a Service, its address and port
/// forwarding.
pub(crate) fn a_pod_runs_and_is_reached(cluster: &Cluster) {
    let image = push_probe(cluster);
    let labels = json!({"app": "probe"});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "probe", "labels": labels},
            "spec": {"containers": [{"name": "probe", "image": image, "args": ["serve"]}]},
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    ]});
    apply(cluster, &objects.to_string());
    kubectl(
        cluster,
        &[
            "wait",
            "--for=condition=Ready",
            "pod/probe",
            "--timeout=60s",
        ],
    );

    assert_eq!(kubectl(cluster, &["logs", "probe"]), "serving\n");
    let exec = |arguments: &[&str]| {
        kubectl(
            cluster,
            &[&["exec", "probe", "--", "/probe"], arguments].concat(),
        )
    };
    let kubernetes = exec(&["resolve", "kubernetes.default.svc.cluster.local"]);
    assert_eq!(kubernetes, "10.96.0.1\n");
    assert_eq!(exec(&["resolve", "kubernetes.default"]), "10.96.0.1\n");
    // The request goes to the Service's address and back to the same pod. kube-proxy needs a moment
    // before it knows the Service.
    eventually("the service does not lead to its pod", || {
        let get = ["exec", "probe", "--", "/probe", "get", "http://front"];
        let output = command(cluster).args(get).output().unwrap();
        output.stdout == b"200\n"
    });
    let health = format!("{}/_emulator/health", cluster.emulator_url());
    assert_eq!(exec(&["get", &health]), "200\n");
    let registry = format!("http://{}/v2/", cluster.registry());
    assert_eq!(exec(&["get", &registry]), "200\n");

    let address = kubectl(
        cluster,
        &["get", "pod", "probe", "-o", "jsonpath={.status.podIP}"],
    );
    assert_eq!(get(&format!("{address}:8080")), "served");
    a_port_is_forwarded(cluster);
}

/// Waits until the condition holds. `what` is the message if it does not hold in time.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Pushes the image of the probe, and returns its name.
pub(crate) fn push_probe(cluster: &Cluster) -> String {
    let cache = Cache::from_environment().unwrap();
    let built = binaries::ensure(&cache, &["probe"], &Progress::to_stderr()).unwrap();
    let layer = cluster.state().temporary().join("probe.tar.gz");
    images::pack_binary(built.path("probe").unwrap(), &layer).unwrap();
    let reference = format!("{}/probe:test", cluster.registry());
    let image = images::Image {
        reference: &reference,
        layers: &[layer],
        entrypoint: "/probe",
        environment: &[],
        user: None,
    };
    images::push(&cluster.program("crane").unwrap(), &image).unwrap();
    reference
}

fn a_port_is_forwarded(cluster: &Cluster) {
    let mut forward = command(cluster)
        .args(["port-forward", "pod/probe", ":8080"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe stays open until the end, because kubectl prints a line for each connection.
    let mut said = BufReader::new(forward.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    // The line looks like this: Forwarding from 127.0.0.1:40123 -> 8080
    let address = line.split_whitespace().nth(2).unwrap_or_default();
    let answer = get(address);
    forward.kill().unwrap();
    forward.wait().unwrap();
    assert_eq!(answer, "served", "{line}");
}

fn get(address: &str) -> String {
    let mut answer = ureq::get(format!("http://{address}/")).call().unwrap();
    answer
        .body_mut()
        .read_to_string()
        .unwrap()
        .trim()
        .to_owned()
}

/// A call of `kubectl` as the administrator.
pub(crate) fn command(cluster: &Cluster) -> Command {
    let mut kubectl = Command::new(cluster.program("kubectl").unwrap());
    kubectl.env("KUBECONFIG", cluster.kubeconfig());
    kubectl
}

/// Runs `kubectl`, which must succeed, and returns its output.
pub(crate) fn kubectl(cluster: &Cluster, arguments: &[&str]) -> String {
    let output = command(cluster).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "kubectl {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn apply(cluster: &Cluster, objects: &str) {
    let mut kubectl = command(cluster)
        .args(["apply", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    kubectl
        .stdin
        .take()
        .unwrap()
        .write_all(objects.as_bytes())
        .unwrap();
    assert!(kubectl.wait().unwrap().success());
}
