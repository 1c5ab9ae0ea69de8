//! The parts of a cluster and their arguments.

use std::path::Path;

use crate::certificates::AGGREGATOR;
use crate::configuration::{AUDIT_POLICY, CONTAINERD_SOCKET, NODE, PROVISIONER, kernel_settings};
use crate::identities;
use crate::layout::Layout;
use crate::network::{POD_IDENTITY_AGENT, SERVICES};
use crate::plan::{Part, Plan, Probe, ReplacedFile};

const ETCD: &str = "http://127.0.0.1:2379";

/// The plan that INIT executes for this cluster.
pub fn plan(layout: &Layout) -> Plan {
    let addresses = layout.addresses;
    let path = format!(
        "{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        layout.state.bin().display()
    );
    let temporary = text(&layout.state.temporary());
    Plan {
        hostname: format!("gpu-workspaces-{}", layout.name),
        cgroup: layout.cgroup(),
        node: addresses.node(),
        host: addresses.host(),
        gateway: addresses.gateway(),
        machines: addresses.machines().to_string(),
        private_folders: ["/run", "/var/lib", "/var/log"].map(Into::into).to_vec(),
        shared_folder: layout.cache.clone(),
        replaced_files: kernel_settings(layout)
            .map(|(source, target)| ReplacedFile { source, target })
            .collect(),
        environment: [
            ("PATH", path),
            ("HOME", temporary.clone()),
            ("TMPDIR", temporary),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec(),
        parts: [
            etcd(layout),
            apiserver(layout),
            controller_manager(layout),
            scheduler(layout),
            containerd(layout),
            kubelet(layout),
            proxy(layout),
            dns(layout),
            volumes(layout),
            network_policies(layout),
            registry(layout),
            emulator(layout),
        ]
        .into_iter()
        .chain(layout.differences.identities.then(|| dex(layout)))
        .collect(),
    }
}

fn etcd(layout: &Layout) -> Part {
    let arguments = [
        ("data-dir", text(&layout.state.data("etcd"))),
        ("listen-client-urls", ETCD.to_owned()),
        ("advertise-client-urls", ETCD.to_owned()),
        ("listen-peer-urls", "http://127.0.0.1:2380".to_owned()),
        ("log-level", "warn".to_owned()),
        // The data does not outlive the cluster, so syncing it to disk would only cost time.
        ("unsafe-no-fsync", "true".to_owned()),
    ];
    part(
        layout,
        "etcd",
        &arguments,
        &[],
        http(&format!("{ETCD}/health")),
    )
}

fn apiserver(layout: &Layout) -> Part {
    let certificates = layout.state.certificates();
    let serving = certificates.files("serving");
    let kubelet_client = certificates.files("kubelet-client");
    let aggregator = certificates.files(AGGREGATOR);
    let (signing_key, verifying_key) = certificates.service_account();
    let authority = text(&certificates.authority());
    let node = layout.addresses.node().to_string();
    let mut arguments = vec![
        ("etcd-servers", ETCD.to_owned()),
        ("bind-address", node.clone()),
        ("advertise-address", node),
        ("secure-port", "6443".to_owned()),
        ("allow-privileged", "true".to_owned()),
        ("authorization-mode", "Node,RBAC".to_owned()),
        (
            "audit-policy-file",
            text(&layout.state.configuration().join(AUDIT_POLICY)),
        ),
        ("audit-log-path", text(&layout.state.log("audit"))),
        ("audit-log-maxsize", "100".to_owned()),
        ("audit-log-maxbackup", "2".to_owned()),
        ("service-cluster-ip-range", SERVICES.to_owned()),
        ("client-ca-file", authority.clone()),
        ("tls-cert-file", text(&serving.certificate)),
        ("tls-private-key-file", text(&serving.key)),
        // Without the following four, `kubectl logs` and `kubectl exec` fail.
        ("kubelet-preferred-address-types", "InternalIP".to_owned()),
        ("kubelet-certificate-authority", authority.clone()),
        (
            "kubelet-client-certificate",
            text(&kubelet_client.certificate),
        ),
        ("kubelet-client-key", text(&kubelet_client.key)),
        // Without the following, the API server forwards no requests to APIs that pods serve, such
        // as Kueue's visibility API.
        ("requestheader-client-ca-file", authority),
        ("requestheader-allowed-names", AGGREGATOR.to_owned()),
        ("requestheader-username-headers", "X-Remote-User".to_owned()),
        ("requestheader-group-headers", "X-Remote-Group".to_owned()),
        (
            "requestheader-extra-headers-prefix",
            "X-Remote-Extra-".to_owned(),
        ),
        ("proxy-client-cert-file", text(&aggregator.certificate)),
        ("proxy-client-key-file", text(&aggregator.key)),
        (
            "service-account-issuer",
            "https://kubernetes.default.svc".to_owned(),
        ),
        ("service-account-key-file", text(&verifying_key)),
        ("service-account-signing-key-file", text(&signing_key)),
    ];
    if let Some(gates) = &layout.differences.feature_gates {
        arguments.push(("feature-gates", gates.clone()));
    }
    if layout.differences.identities {
        let file = layout
            .state
            .configuration()
            .join(identities::AUTHENTICATION);
        arguments.push(("authentication-config", text(&file)));
    }
    let ready = https(layout, &format!("{}/readyz", layout.addresses.apiserver()));
    Part {
        // With Go's default, the API server spends a third of its time on garbage collection. The
        // higher value takes more memory, which is available.
        environment: vec![("GOGC".to_owned(), "300".to_owned())],
        ..part(layout, "kube-apiserver", &arguments, &["etcd"], ready)
    }
}

fn controller_manager(layout: &Layout) -> Part {
    let certificates = layout.state.certificates();
    let (signing_key, _) = certificates.service_account();
    let mut arguments = control_loop(layout, "controller-manager");
    arguments.extend([
        ("use-service-account-credentials", "true".to_owned()),
        ("root-ca-file", text(&certificates.authority())),
        ("service-account-private-key-file", text(&signing_key)),
        (
            "flex-volume-plugin-dir",
            text(&layout.state.data("volume-plugins")),
        ),
        // A single developer causes only small bursts of requests, and the default limits would
        // delay them.
        ("kube-api-qps", "100".to_owned()),
        ("kube-api-burst", "200".to_owned()),
    ]);
    let ready = https(layout, "https://127.0.0.1:10257/healthz");
    part(
        layout,
        "kube-controller-manager",
        &arguments,
        &["kube-apiserver"],
        ready,
    )
}

fn scheduler(layout: &Layout) -> Part {
    let arguments = control_loop(layout, "scheduler");
    let ready = https(layout, "https://127.0.0.1:10259/healthz");
    part(
        layout,
        "kube-scheduler",
        &arguments,
        &["kube-apiserver"],
        ready,
    )
}

/// The arguments that the controller manager and the scheduler share.
fn control_loop(layout: &Layout, client: &str) -> Vec<(&'static str, String)> {
    let serving = layout.state.certificates().files("serving");
    let kubeconfig = text(&layout.state.kubeconfig_of(client));
    vec![
        ("kubeconfig", kubeconfig.clone()),
        ("authentication-kubeconfig", kubeconfig.clone()),
        ("authorization-kubeconfig", kubeconfig),
        ("authentication-tolerate-lookup-failure", "true".to_owned()),
        ("bind-address", "127.0.0.1".to_owned()),
        ("tls-cert-file", text(&serving.certificate)),
        ("tls-private-key-file", text(&serving.key)),
        ("leader-elect", "false".to_owned()),
    ]
}

fn containerd(layout: &Layout) -> Part {
    let configuration = layout.state.configuration().join("containerd.toml");
    let arguments = [("config", text(&configuration))];
    let socket = Probe::Socket {
        path: CONTAINERD_SOCKET.into(),
    };
    part(layout, "containerd", &arguments, &[], socket)
}

fn kubelet(layout: &Layout) -> Part {
    let configuration = layout.state.configuration().join("kubelet.json");
    let arguments = [
        ("config", text(&configuration)),
        ("kubeconfig", text(&layout.state.kubeconfig_of("kubelet"))),
        ("root-dir", text(&layout.state.data("kubelet"))),
        ("cert-dir", text(&layout.state.data("kubelet").join("pki"))),
        ("hostname-override", NODE.to_owned()),
        ("node-ip", layout.addresses.node().to_string()),
    ];
    let after = ["containerd", "kube-apiserver"];
    part(
        layout,
        "kubelet",
        &arguments,
        &after,
        http("http://127.0.0.1:10248/healthz"),
    )
}

fn proxy(layout: &Layout) -> Part {
    let configuration = layout.state.configuration().join("kube-proxy.json");
    let arguments = [("config", text(&configuration))];
    let ready = http("http://127.0.0.1:10256/healthz");
    part(layout, "kube-proxy", &arguments, &["kube-apiserver"], ready)
}

fn dns(layout: &Layout) -> Part {
    let configuration = layout.state.configuration().join("Corefile");
    let arguments = [("conf", text(&configuration))];
    let ready = http("http://127.0.0.1:8181/ready");
    part(layout, "coredns", &arguments, &["kube-apiserver"], ready)
}

fn volumes(layout: &Layout) -> Part {
    let address = "127.0.0.1:8082";
    let arguments = [
        ("kubeconfig", text(&layout.state.kubeconfig())),
        ("provisioner", PROVISIONER.to_owned()),
        ("folder", text(&layout.state.data("volumes"))),
        ("node", NODE.to_owned()),
        ("address", address.to_owned()),
    ];
    let ready = http(&format!("http://{address}/healthz"));
    part(layout, "volumes", &arguments, &["kube-apiserver"], ready)
}

fn network_policies(layout: &Layout) -> Part {
    let address = "127.0.0.1:8083";
    let arguments = [
        ("kubeconfig", text(&layout.state.kubeconfig())),
        ("address", address.to_owned()),
    ];
    let ready = http(&format!("http://{address}/healthz"));
    let after = ["kube-apiserver"];
    part(layout, "network-policies", &arguments, &after, ready)
}

fn registry(layout: &Layout) -> Part {
    let address = layout.addresses.registry();
    let ready = http(&format!("http://{address}/v2/"));
    Part {
        name: "registry".to_owned(),
        program: layout.program("crane"),
        arguments: ["registry", "serve", "--address", &address, "--disk"]
            .map(str::to_owned)
            .into_iter()
            .chain([text(&layout.state.data("registry"))])
            .collect(),
        environment: Vec::new(),
        after: Vec::new(),
        ready,
        log: layout.state.log("registry"),
    }
}

fn emulator(layout: &Layout) -> Part {
    let host = layout.addresses.gateway().to_string();
    let variable = |name: &str, value: String| (name.to_owned(), value);
    Part {
        name: "ec2-emulator".to_owned(),
        program: layout.python.clone(),
        arguments: [
            "-m",
            "ec2_emulator",
            "--host",
            &host,
            "--port",
            "4566",
            "--agent-host",
            &POD_IDENTITY_AGENT.to_string(),
            "--machines",
            &text(&layout.state.data("machines")),
            "--machine-network",
            &layout.addresses.machines().to_string(),
        ]
        .map(str::to_owned)
        .to_vec(),
        environment: vec![
            variable("PYTHONPATH", text(&layout.state.emulator())),
            // Python writes the log without a buffer, so that a reader sees each line at once.
            variable("PYTHONUNBUFFERED", "1".to_owned()),
        ],
        after: Vec::new(),
        ready: http(&format!("{}/_emulator/health", layout.addresses.emulator())),
        log: layout.state.log("ec2-emulator"),
    }
}

fn dex(layout: &Layout) -> Part {
    let configuration = layout.state.configuration();
    let issuer = layout.addresses.issuer();
    let ready = https(layout, &format!("{issuer}/healthz"));
    Part {
        arguments: vec![
            "serve".to_owned(),
            text(&configuration.join(identities::CONFIGURATION)),
        ],
        ..part(layout, "dex", &[], &[], ready)
    }
}

/// A part with the same name as its binary.
fn part(
    layout: &Layout,
    name: &str,
    arguments: &[(&str, String)],
    after: &[&str],
    ready: Probe,
) -> Part {
    // All parts accept flags with two hyphens. CoreDNS's documentation shows one hyphen, but it
    // accepts two as well.
    let argument = |(name, value): &(&str, String)| format!("--{name}={value}");
    Part {
        name: name.to_owned(),
        program: layout.program(name),
        arguments: arguments.iter().map(argument).collect(),
        environment: Vec::new(),
        after: after.iter().map(|name| (*name).to_owned()).collect(),
        ready,
        log: layout.state.log(name),
    }
}

fn http(url: &str) -> Probe {
    Probe::Http {
        url: url.to_owned(),
        authority: None,
    }
}

fn https(layout: &Layout, url: &str) -> Probe {
    Probe::Http {
        url: url.to_owned(),
        authority: Some(layout.state.certificates().authority()),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
