//! The StatefulSet: the workspace's nodes.
//!
//! `updateStrategy: OnDelete`: Kubernetes ends no pod because its template changed.
//! What is rendered for the same arguments never changes within a behaviour version,
//! or Kueue would refuse it while the workspace runs.

use api::lifecycle::PodAgent;
use function_workspace::labels::OWNER_LABEL;
use serde_json::{Map, Value, json};

use crate::names::{Names, WORKSPACE_LABEL};
use crate::record::{self, Record};
use crate::seen::{CONTAINER, PREPARE};

/// Where the programs are.
const PROGRAMS: &str = "/opt/gpu-workspace/bin";
/// The owner's uid and gid, and the group of the home volume.
const DEVELOPER: i64 = 1000;
/// torchrun's own default.
const MASTER_PORT: &str = "29500";
/// Where a node's main process says whether sshd answers (`scripts/readiness.py`).
pub(super) const READINESS_PORT: u16 = 9022;
/// How long a token for the first container is good, in seconds; Kubernetes' least.
const TOKEN_SECONDS: i64 = 600;
/// Where Kubernetes' clients look for a token.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The container of the agent.
pub(super) const AGENT: &str = "agent";
/// Where the owner finds the agent's program.
const AGENT_PROGRAMS: &str = "/opt/gpu-workspace/agent";
/// Where jobs are registered: the containers of a pod share its locks.
const AGENT_RUN: &str = "/run/gpu-workspace-agent";
/// How long a pod may take to end: the hooks before a stop, and sshd.
const GRACE_SECONDS: i64 = 150;

/// What a `StatefulSet` is made from.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    /// What its objects are called.
    pub names: &'a Names,
    /// Whose it is, as the claim says.
    pub owner: &'a str,
    /// What its pods are made from.
    pub record: &'a Record,
    /// How many of them are to run: all or none.
    pub replicas: i32,
    /// The volume claim template of the homes, where there are homes.
    pub home: Option<&'a Value>,
}

impl Nodes<'_> {
    /// The manifest.
    pub fn manifest(self) -> Value {
        let Self { names, record, .. } = self;
        let mut own = labels(names, self.owner);
        // Kueue copies them to the pods itself.
        if let Some(queue) = &record.pods.queue {
            own["kueue.x-k8s.io/queue-name"] = json!(queue.name);
            if let Some(class) = &queue.priority_class {
                own["kueue.x-k8s.io/priority-class"] = json!(class);
            }
        }
        let mut spec = json!({
            "serviceName": names.name,
            "replicas": self.replicas,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "selector": {"matchLabels": {(WORKSPACE_LABEL): names.name}},
            "template": {
                "metadata": {
                    "labels": labels(names, &record.owner),
                    "annotations": {"kubectl.kubernetes.io/default-container": CONTAINER},
                },
                "spec": self.pod(),
            },
        });
        if let Some(home) = self.home {
            spec["volumeClaimTemplates"] = json!([home]);
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {
                "name": names.name,
                "namespace": names.namespace,
                "labels": own,
                "annotations": {(record::ANNOTATION): record.written()},
            },
            "spec": spec,
        })
    }

    fn pod(self) -> Value {
        let Self { names, record, .. } = self;
        let pods = &record.pods;
        let mut spec = json!({
            "serviceAccountName": names.name,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": pods.agent.as_ref().map_or(30, |_| GRACE_SECONDS),
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": DEVELOPER,
                "runAsGroup": DEVELOPER,
                "fsGroup": DEVELOPER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
                // SSH's port, without a capability.
                "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
            },
            "initContainers": self.first_containers(),
            "containers": [self.workspace()],
            "volumes": self.volumes(),
        });
        if !pods.node_selector.is_empty() {
            spec["nodeSelector"] = json!(pods.node_selector);
        }
        if !pods.tolerations.is_empty() {
            spec["tolerations"] = json!(pods.tolerations);
        }
        if let Some(class) = &pods.runtime_class_name {
            spec["runtimeClassName"] = json!(class);
        }
        spec
    }

    /// Makes the host keys, or fetches them: the only container that may ask the API
    /// server for anything.
    fn prepare(self) -> Value {
        let mounts = [
            mount("files", PROGRAMS, true),
            mount("host-keys", "/run/gpu-workspace", false),
            mount("token", TOKEN, true),
        ];
        json!({
            "name": PREPARE,
            "image": self.record.pods.image,
            "command": [format!("{PROGRAMS}/prepare")],
            "env": [{"name": "WORKSPACE_SECRET", "value": self.names.host_keys()}],
            "resources": {
                // A pod asks for as much as its greediest container.
                "requests": {"cpu": "10m", "memory": "64Mi"},
                "limits": {"memory": "256Mi"},
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": unprivileged(),
            "volumeMounts": mounts,
        })
    }

    fn first_containers(self) -> Vec<Value> {
        let agent = self.record.pods.agent.as_ref();
        let agent = agent.map(|agent| [agent_program(agent), self.agent(agent)]);
        agent
            .into_iter()
            .flatten()
            .chain([self.prepare()])
            .collect()
    }

    /// The agent, in a container of its own: what it says is not the owner's to say.
    fn agent(self, agent: &PodAgent) -> Value {
        let lease = format!("{}/$(POD_NAME)-activity", self.names.namespace);
        let seconds = agent.report_seconds.to_string();
        json!({
            "name": AGENT,
            "image": agent.image,
            "restartPolicy": "Always",
            "args": ["watch", "--to", "lease", lease, "--report-interval", seconds],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "GPU_WORKSPACE_RUN_DIR", "value": AGENT_RUN},
            ],
            "resources": agent_resources(),
            "securityContext": unprivileged(),
            "volumeMounts": [
                mount("agent-run", AGENT_RUN, false),
                mount("home", "/home/developer", true),
                mount("token", TOKEN, true),
            ],
        })
    }

    fn workspace(self) -> Value {
        let pods = &self.record.pods;
        let mut mounts = vec![
            mount("files", PROGRAMS, true),
            mount("authorized-keys", "/etc/gpu-workspace/ssh", true),
            mount("host-keys", "/run/gpu-workspace", false),
            mount("home", "/home/developer", false),
            mount("shm", "/dev/shm", false),
        ];
        if pods.service_account_token {
            mounts.push(mount("token", TOKEN, true));
        }
        if pods.agent.is_some() {
            mounts.push(mount("agent", AGENT_PROGRAMS, true));
            mounts.push(mount("agent-run", AGENT_RUN, false));
        }
        mounts.extend(pods.shared_volumes.iter().enumerate().map(|(n, shared)| {
            let mut mount = mount(&format!("shared-{n}"), &shared.mount_path, shared.read_only);
            if let Some(path) = &shared.sub_path {
                mount["subPath"] = json!(path);
            }
            mount
        }));
        // No limit of CPU: what others leave idle speeds up whoever is at work.
        let mut limits = json!({"memory": pods.memory});
        if pods.gpus > 0 {
            limits[&pods.gpu_resource] = json!(pods.gpus.to_string());
        }
        let mut requests = limits.clone();
        requests["cpu"] = json!(pods.cpu);
        let mut workspace = json!({
            "name": CONTAINER,
            "image": pods.image,
            "command": [format!("{PROGRAMS}/start")],
            "env": self.environment(),
            "ports": [{"name": "ssh", "containerPort": 22, "protocol": "TCP"}],
            "resources": {"requests": requests, "limits": limits},
            "readinessProbe": {
                "httpGet": {"path": "/", "port": READINESS_PORT},
                "periodSeconds": 2,
                "timeoutSeconds": 5,
                // A busy machine is no reason to call somebody's session lost.
                "failureThreshold": 5,
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": unprivileged(),
            "volumeMounts": mounts,
        });
        if pods.agent.is_some() {
            let program = format!("{AGENT_PROGRAMS}/gpu-workspace-agent");
            // Without `--owner`: the container has no other user.
            let hooks = json!({"exec": {"command": [program, "pre-stop"]}});
            workspace["lifecycle"] = json!({"preStop": hooks});
        }
        workspace
    }

    /// torchrun reads its options from `PET_` variables; never the ranks and sizes
    /// that it sets itself.
    fn environment(self) -> Vec<Value> {
        let pods = &self.record.pods;
        let names = self.names.in_domain(&self.record.domain);
        let hosts: Vec<String> = (0..pods.nodes).map(|node| names.host(node)).collect();
        let fixed = [
            ("WORKSPACE_NAME", names.name.clone()),
            ("WORKSPACE_NAMESPACE", names.namespace.clone()),
            ("WORKSPACE_HOSTS", hosts.join(" ")),
            ("WORKSPACE_OPENCV_VERSION", pods.opencv_version.clone()),
            ("WORKSPACE_PYTORCH_VERSION", pods.pytorch_version.clone()),
            ("PET_NNODES", pods.nodes.to_string()),
            ("PET_NPROC_PER_NODE", pods.gpus.max(1).to_string()),
            ("PET_MASTER_ADDR", names.host(0)),
            ("PET_MASTER_PORT", MASTER_PORT.to_owned()),
        ];
        let fixed = fixed.map(|(name, value)| json!({"name": name, "value": value}));
        let run = json!({"name": "GPU_WORKSPACE_RUN_DIR", "value": AGENT_RUN});
        let run = pods.agent.as_ref().map(|_| run);
        let rank = json!({
            "name": "PET_NODE_RANK",
            "valueFrom": {"fieldRef": {
                "fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']",
            }},
        });
        let nccl = pods.nccl.iter();
        let nccl = nccl.map(|(name, value)| json!({"name": name, "value": value}));
        fixed
            .into_iter()
            .chain(run)
            .chain([rank])
            .chain(nccl)
            .collect()
    }

    fn volumes(self) -> Vec<Value> {
        let Self { names, record, .. } = self;
        let pods = &record.pods;
        let mut volumes = vec![
            json!({"name": "files", "configMap": {"name": names.files(), "defaultMode": 0o555}}),
            json!({"name": "authorized-keys", "configMap": {"name": names.authorized_keys()}}),
            json!({"name": "host-keys", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}),
            json!({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": pods.shm_size}}),
            token_volume(),
        ];
        if pods.agent.is_some() {
            volumes.push(json!({"name": "agent", "emptyDir": {"sizeLimit": "64Mi"}}));
            volumes.push(json!({"name": "agent-run", "emptyDir": {"sizeLimit": "1Mi"}}));
        }
        if self.home.is_none() {
            volumes.push(json!({"name": "home", "emptyDir": {}}));
        }
        volumes.extend(pods.shared_volumes.iter().enumerate().map(|(n, shared)| {
            let claim = json!({"claimName": shared.claim_name, "readOnly": shared.read_only});
            json!({"name": format!("shared-{n}"), "persistentVolumeClaim": claim})
        }));
        volumes
    }
}

fn labels(names: &Names, owner: &str) -> Value {
    json!({(WORKSPACE_LABEL): names.name, (OWNER_LABEL): owner})
}

/// A token, and what it takes to trust the API server with it.
fn token_volume() -> Value {
    json!({
        "name": "token",
        "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
            ]}},
        ]},
    })
}

fn mount(volume: &str, path: &str, read_only: bool) -> Value {
    let mut mount = Map::new();
    mount.insert("name".to_owned(), json!(volume));
    mount.insert("mountPath".to_owned(), json!(path));
    if read_only {
        mount.insert("readOnly".to_owned(), json!(true));
    }
    mount.into()
}

/// Brings the agent's program to the owner, who registers jobs with it.
fn agent_program(agent: &PodAgent) -> Value {
    json!({
        "name": "agent-program",
        "image": agent.image,
        "args": ["install", AGENT_PROGRAMS],
        "resources": agent_resources(),
        "securityContext": unprivileged(),
        "volumeMounts": [mount("agent", AGENT_PROGRAMS, false)],
    })
}

fn agent_resources() -> Value {
    json!({
        "requests": {"cpu": "5m", "memory": "16Mi"},
        "limits": {"memory": "64Mi"},
    })
}

/// What Pod Security's level `restricted` asks of a container.
fn unprivileged() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
    })
}
