//! The configuration files of the parts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cache::{self, create_folder, write};
use crate::identities;
use crate::layout::Layout;
use crate::network::DNS_SERVICE;

/// The containerd socket, in the cluster's own /run.
pub const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// The provisioner that the default storage class names: the part `volumes`.
pub const PROVISIONER: &str = "gpu-workspaces.local/folders";
/// The name of the only node.
pub const NODE: &str = "node";
/// The folder into which Debian installs the CNI plugins.
pub const CNI_PLUGINS: &str = "/usr/lib/cni";

/// The file with what the API server records in its audit log.
pub const AUDIT_POLICY: &str = "audit-policy.json";
/// The users whose requests the API server records: the bastion and the portal.
const AUDITED: [&str; 2] = [
    "system:serviceaccount:gpu-bastion:gpu-bastion",
    "system:serviceaccount:gpu-portal:gpu-portal",
];

/// The clients that get a kubeconfig. Their certificates have the same names.
const KUBECONFIGS: &[&str] = &[
    "admin",
    "controller-manager",
    "scheduler",
    "kubelet",
    "proxy",
];

/// The kernel settings that the kubelet wants (`setupKernelTunables`). The kubelet would write them
/// for the whole machine, so INIT mounts files with these values over the settings.
const KERNEL_SETTINGS: &[(&str, &str)] = &[
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];

/// Writes all configuration files and kubeconfigs.
pub fn write_all(layout: &Layout) -> Result<(), cache::Error> {
    let folder = layout.state.configuration();
    for (path, text) in files(layout) {
        write_into(&folder.join(path), &text)?;
    }
    for client in KUBECONFIGS {
        let text = format!("{:#}\n", kubeconfig(layout, client));
        write_into(&layout.state.kubeconfig_of(client), &text)?;
    }
    if layout.differences.identities {
        let authority = cache::read(&layout.state.certificates().authority())?;
        let authentication = identities::authentication(layout.addresses, &authority);
        for (name, file) in [
            (identities::AUTHENTICATION, authentication),
            (identities::CONFIGURATION, identities::configuration(layout)),
        ] {
            write_into(&folder.join(name), &format!("{file:#}\n"))?;
        }
    }
    Ok(())
}

fn write_into(path: &Path, text: &str) -> Result<(), cache::Error> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    write(path, text)
}

/// The API server's audit policy. Tests compare these records with those of the bastion and of the portal.
/// Everybody else would fill the disk.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": AUDITED}, {"level": "None"}],
    })
}

/// The files of the configuration folder, with their contents.
fn files(layout: &Layout) -> Vec<(PathBuf, String)> {
    let registry = layout.addresses.registry();
    let mut files: Vec<(PathBuf, String)> = vec![
        ("containerd.toml".into(), containerd(layout)),
        (
            format!("registries/{registry}/hosts.toml").into(),
            format!("server = \"http://{registry}\"\n"),
        ),
        (
            "cni/pods.conflist".into(),
            format!("{:#}\n", pod_network(layout)),
        ),
        (AUDIT_POLICY.into(), format!("{:#}\n", audit_policy())),
        ("kubelet.json".into(), format!("{:#}\n", kubelet(layout))),
        ("kube-proxy.json".into(), format!("{:#}\n", proxy(layout))),
        ("Corefile".into(), corefile(layout)),
        ("resolv.conf".into(), format!("nameserver {DNS_SERVICE}\n")),
    ];
    for (name, value) in KERNEL_SETTINGS {
        files.push((kernel_setting(name), format!("{value}\n")));
    }
    files
}

/// The files that replace kernel settings: each with the path that INIT mounts it on.
pub fn kernel_settings(layout: &Layout) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let folder = layout.state.configuration();
    KERNEL_SETTINGS.iter().map(move |(name, _)| {
        let shown = Path::new("/proc/sys").join(name);
        (folder.join(kernel_setting(name)), shown)
    })
}

fn kernel_setting(name: &str) -> PathBuf {
    Path::new("kernel").join(name.replace('/', "."))
}

fn kubeconfig(layout: &Layout, client: &str) -> Value {
    let certificates = layout.state.certificates();
    let files = certificates.files(client);
    let name = format!("gpu-workspaces-{}", layout.name);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {
            "server": layout.addresses.apiserver(),
            "certificate-authority": certificates.authority(),
        }}],
        "users": [{"name": client, "user": {
            "client-certificate": files.certificate,
            "client-key": files.key,
        }}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": client}}],
        "current-context": name,
    })
}

fn containerd(layout: &Layout) -> String {
    let data = layout.state.data("containerd");
    let configuration = layout.state.configuration();
    format!(
        r#"version = 3
root = '{data}'
state = '/run/containerd'

[grpc]
address = '{CONTAINERD_SOCKET}'

[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
# The cluster may run where a lower score than its own is not allowed; pods then
# fail with "can't get final child's PID".
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{CNI_PLUGINS}']
conf_dir = '{configuration}/cni'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{pause}'

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = '{configuration}/registries'
"#,
        data = data.display(),
        configuration = configuration.display(),
        pause = layout.pause_image(),
    )
}

fn pod_network(layout: &Layout) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": layout.state.data("cni"),
                    "ranges": [[{
                        "subnet": layout.addresses.pods().to_string(),
                        "gateway": layout.addresses.gateway(),
                    }]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn kubelet(layout: &Layout) -> Value {
    let mut kubelet = kubelet_by_default(layout);
    if let Some(seconds) = layout.differences.restart_pause {
        let period = format!("{seconds}s");
        kubelet["crashLoopBackOff"] = json!({"maxContainerRestartPeriod": period});
    }
    kubelet
}

fn kubelet_by_default(layout: &Layout) -> Value {
    let certificates = layout.state.certificates();
    let serving = certificates.files("kubelet-serving");
    // The developer decides about disk and memory, so the kubelet must evict no pod to free them.
    let never = json!({
        "imagefs.available": "0%", "memory.available": "0%",
        "nodefs.available": "0%", "nodefs.inodesFree": "0%",
    });
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.addresses.node(),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": certificates.authority()},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": serving.certificate,
        "tlsPrivateKeyFile": serving.key,
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": layout.state.configuration().join("resolv.conf"),
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "podLogsDir": layout.state.logs().join("pods"),
        "volumePluginDir": layout.state.data("volume-plugins"),
        // Without this setting the kubelet refuses to start under cgroup version 1. Under version 2
        // it has no effect.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "evictionHard": never,
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": false,
        // By default, pods see a changed Secret within a minute. Installations that create their
        // own certificates would wait for that.
        "syncFrequency": "5s",
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
    })
}

fn proxy(layout: &Layout) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": layout.state.kubeconfig_of("proxy")},
        "clusterCIDR": layout.addresses.pods().to_string(),
        "hostnameOverride": NODE,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        // The limits apply to the whole machine, and only the host's own network namespace may set
        // them. With 0, kube-proxy leaves them alone.
        "conntrack": {"maxPerCore": 0, "min": 0},
    })
}

fn corefile(layout: &Layout) -> String {
    let gateway = layout.addresses.gateway();
    let kubeconfig = layout.state.kubeconfig();
    // There is no upstream server. CoreDNS answers at once that a name outside the cluster does not
    // exist; otherwise each client would wait for its timeout.
    format!(
        "cluster.local in-addr.arpa ip6.arpa {{
    bind {gateway}
    errors
    health 127.0.0.1:8081
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 5
    }}
    cache 5
}}
. {{
    bind {gateway}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
",
        kubeconfig = kubeconfig.display(),
    )
}

/// The objects that every cluster begins with.
pub fn first_objects(layout: &Layout) -> Value {
    let [service, endpoints] = dns_objects(layout);
    json!({"apiVersion": "v1", "kind": "List", "items": [service, endpoints, storage_class()]})
}

/// The default storage class, for volume claims that name no class. Its volumes are folders in the
/// cluster's state folder, which the part `volumes` creates.
fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": "folders",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    })
}

/// The objects that make the DNS service known inside the cluster.
fn dns_objects(layout: &Layout) -> [Value; 2] {
    let ports = json!([
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]);
    let metadata = |name: &str| {
        json!({
            "name": name, "namespace": "kube-system",
            "labels": {"k8s-app": "kube-dns", "kubernetes.io/service-name": "kube-dns"},
        })
    };
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata("kube-dns"),
            "spec": {"clusterIP": DNS_SERVICE, "ports": ports},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": metadata("kube-dns"), "addressType": "IPv4",
            "ports": ports,
            "endpoints": [{
                "addresses": [layout.addresses.gateway()],
                "conditions": {"ready": true},
            }],
        }),
    ]
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
