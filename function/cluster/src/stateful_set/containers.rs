//! The containers of the pods.

use std::collections::BTreeMap;

use api::lifecycle::PodAgent;
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, ExecAction, HTTPGetAction,
    Lifecycle, LifecycleHandler, Probe, ResourceRequirements, SecurityContext, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Pods;
use super::volumes::field;
use crate::seen::{CONTAINER, PREPARE};
use function_workspace::quantity;

/// The folder of the workspace's programs.
const PROGRAMS: &str = "/opt/gpu-workspace/bin";
/// The default port of torchrun.
const MASTER_PORT: &str = "29500";
/// Kubernetes' resource for a pod's files outside of volumes, its logs and its `emptyDir` volumes.
const DISK: &str = "ephemeral-storage";
/// The port on which a pod's main process answers whether sshd is ready (`programs/readiness.py`).
const READINESS_PORT: i32 = 9022;
/// The folder where Kubernetes' clients look for a token.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The name of the agent's container.
const AGENT: &str = "agent";
/// The folder where the owner finds the agent's program.
const AGENT_PROGRAMS: &str = "/opt/gpu-workspace/agent";
/// The owner's home.
const HOME: &str = "/home/developer";
/// The folder where Jupyter's servers describe themselves to the agent.
const JUPYTER_RUN: &str = "/run/gpu-workspace-jupyter";
/// The folder where the agent looks for these descriptions.
const JUPYTER_BELOW_HOME: &str = "/home/developer/.local/share/jupyter/runtime";
/// The largest request of disk space. Under disk pressure, kubelet first evicts pods that use more
/// than they request.
const DISK_REQUEST: &str = "1Gi";
/// The folder where jobs are registered. The containers of a pod share its file locks.
const AGENT_RUN: &str = "/run/gpu-workspace-agent";

impl Pods<'_> {
    /// The init container that creates or fetches the host keys. It and the agent are the only
    /// containers that get the token, unless the claim asks for it.
    fn prepare(self) -> Container {
        Container {
            name: PREPARE.to_owned(),
            image: Some(self.record.pods.image.clone()),
            command: Some(vec![format!("{PROGRAMS}/prepare")]),
            env: Some(vec![variable("WORKSPACE_SECRET", self.names.host_keys())]),
            // Kubernetes takes the largest request of the init containers into account, so this
            // one must not exceed the request of the workspace.
            resources: Some(resources(
                [("cpu", "10m"), ("memory", "64Mi")],
                [("memory", "256Mi")],
            )),
            termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
            security_context: Some(unprivileged()),
            volume_mounts: Some(vec![
                mount("files", PROGRAMS, true),
                mount("host-keys", "/run/gpu-workspace", false),
                mount("token", TOKEN, true),
            ]),
            ..Container::default()
        }
    }

    pub(super) fn first_containers(self) -> Vec<Container> {
        let agent = self.record.pods.agent.as_ref();
        let agent = agent.map(|agent| [agent_program(agent), self.agent(agent)]);
        agent
            .into_iter()
            .flatten()
            .chain([self.prepare()])
            .collect()
    }

    /// The agent in a container of its own, so that the owner cannot forge its reports.
    fn agent(self, agent: &PodAgent) -> Container {
        let (namespace, end) = (&self.names.namespace, self.names.after_pod());
        let lease = format!("{namespace}/$(POD_NAME){end}");
        let seconds = agent.report_seconds.to_string();
        let arguments = [
            "watch",
            "--to",
            "lease",
            &lease,
            "--report-interval",
            &seconds,
        ];
        Container {
            name: AGENT.to_owned(),
            image: Some(agent.image.clone()),
            restart_policy: Some("Always".to_owned()),
            args: Some(arguments.map(str::to_owned).into()),
            env: Some(vec![
                field_variable("POD_NAME", "metadata.name"),
                variable("GPU_WORKSPACE_RUN_DIR", AGENT_RUN.to_owned()),
            ]),
            resources: Some(agent_resources()),
            security_context: Some(unprivileged()),
            volume_mounts: Some(vec![
                mount("agent-run", AGENT_RUN, false),
                self.kernels(),
                mount("token", TOKEN, true),
            ]),
            ..Container::default()
        }
    }

    /// Where the agent looks for Jupyter's servers. From behaviour version v3 on, the agent's
    /// container has this one folder and not the home: it has the token, so no file of the owner
    /// must be a program there.
    fn kernels(self) -> VolumeMount {
        if self.has_jupyter_folder() {
            mount("jupyter", JUPYTER_BELOW_HOME, true)
        } else {
            mount("home", HOME, true)
        }
    }

    /// Whether Jupyter's servers describe themselves in a volume of their own.
    pub(super) fn has_jupyter_folder(self) -> bool {
        let pods = &self.record.pods;
        pods.agent.is_some() && pods.is_bounded()
    }

    pub(super) fn workspace(self) -> Container {
        let pods = &self.record.pods;
        let program = format!("{AGENT_PROGRAMS}/gpu-workspace-agent");
        // Without `--owner`, because the container has no other user.
        let hook = pods.agent.as_ref().map(|_| LifecycleHandler {
            exec: Some(ExecAction {
                command: Some(vec![program, "pre-stop".to_owned()]),
            }),
            ..LifecycleHandler::default()
        });
        Container {
            name: CONTAINER.to_owned(),
            image: Some(pods.image.clone()),
            command: Some(vec![format!("{PROGRAMS}/start")]),
            env: Some(self.environment()),
            ports: Some(vec![ContainerPort {
                name: Some("ssh".to_owned()),
                container_port: 22,
                protocol: Some("TCP".to_owned()),
                ..ContainerPort::default()
            }]),
            resources: Some(self.resources()),
            readiness_probe: Some(Probe {
                http_get: Some(HTTPGetAction {
                    path: Some("/".to_owned()),
                    port: IntOrString::Int(READINESS_PORT),
                    ..HTTPGetAction::default()
                }),
                period_seconds: Some(2),
                timeout_seconds: Some(5),
                // On a busy node a single probe may time out although the session works.
                failure_threshold: Some(5),
                ..Probe::default()
            }),
            termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
            security_context: Some(unprivileged()),
            volume_mounts: Some(self.mounts()),
            lifecycle: hook.map(|hook| Lifecycle {
                pre_stop: Some(hook),
                ..Lifecycle::default()
            }),
            ..Container::default()
        }
    }

    /// There is no CPU limit: a pod may use idle CPUs of its node.
    fn resources(self) -> ResourceRequirements {
        let pods = &self.record.pods;
        let memory = ("memory".to_owned(), Quantity(pods.memory.clone()));
        let gpus =
            (pods.gpus > 0).then(|| (pods.gpu_resource.clone(), Quantity(pods.gpus.to_string())));
        let mut limits: BTreeMap<_, _> = [memory].into_iter().chain(gpus).collect();
        let mut requests = limits.clone();
        requests.insert("cpu".to_owned(), Quantity(pods.cpu.clone()));
        if let Some(scratch) = &pods.scratch {
            let request = smaller(scratch, DISK_REQUEST);
            limits.insert(DISK.to_owned(), Quantity(scratch.clone()));
            requests.insert(DISK.to_owned(), Quantity(request.to_owned()));
        }
        ResourceRequirements {
            requests: Some(requests),
            limits: Some(limits),
            claims: None,
        }
    }

    fn mounts(self) -> Vec<VolumeMount> {
        let pods = &self.record.pods;
        let mut mounts = vec![
            mount("files", PROGRAMS, true),
            mount("authorized-keys", "/etc/gpu-workspace/ssh", true),
            mount("host-keys", "/run/gpu-workspace", false),
            mount("home", HOME, false),
            mount("shm", "/dev/shm", false),
        ];
        if pods.service_account_token {
            mounts.push(mount("token", TOKEN, true));
        }
        if pods.agent.is_some() {
            mounts.push(mount("agent", AGENT_PROGRAMS, true));
            mounts.push(mount("agent-run", AGENT_RUN, false));
        }
        if self.has_jupyter_folder() {
            mounts.push(mount("jupyter", JUPYTER_RUN, false));
        }
        let shared = pods.shared_volumes.iter().enumerate();
        mounts.extend(shared.map(|(n, shared)| VolumeMount {
            sub_path: shared.sub_path.clone(),
            ..mount(&format!("shared-{n}"), &shared.mount_path, shared.read_only)
        }));
        mounts
    }

    /// torchrun reads its options from `PET_` variables. Ranks and sizes that torchrun sets itself
    /// are left out.
    fn environment(self) -> Vec<EnvVar> {
        let pods = &self.record.pods;
        let names = self.names.in_domain(&self.record.domain);
        let hosts: Vec<String> = (0..pods.nodes).map(|ordinal| names.host(ordinal)).collect();
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
        let run = pods.agent.as_ref();
        let run = run.map(|_| variable("GPU_WORKSPACE_RUN_DIR", AGENT_RUN.to_owned()));
        let jupyter = self
            .has_jupyter_folder()
            .then(|| variable("JUPYTER_RUNTIME_DIR", JUPYTER_RUN.to_owned()));
        // NVIDIA's runtime gives a container that asks for no GPU all GPUs of the node, if its image
        // says so.
        let no_gpus = (pods.is_bounded() && pods.gpus == 0)
            .then(|| variable("NVIDIA_VISIBLE_DEVICES", "void".to_owned()));
        let pod_index = "metadata.labels['apps.kubernetes.io/pod-index']";
        let nccl = pods.nccl.iter();
        fixed
            .map(|(name, value)| variable(name, value))
            .into_iter()
            .chain(run)
            .chain(jupyter)
            .chain(no_gpus)
            .chain([field_variable("PET_NODE_RANK", pod_index)])
            .chain(nccl.map(|(name, value)| variable(name, value.clone())))
            .collect()
    }
}

/// The smaller of two amounts of memory or disk space.
fn smaller<'a>(one: &'a str, other: &'a str) -> &'a str {
    if quantity::memory(one) < quantity::memory(other) {
        one
    } else {
        other
    }
}

fn variable(name: &str, value: String) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value),
        value_from: None,
    }
}

/// An environment variable with the value of a field of the pod.
fn field_variable(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(field(path)),
            ..EnvVarSource::default()
        }),
    }
}

fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// The init container that copies the agent's program into a volume. The owner registers jobs with
/// it.
fn agent_program(agent: &PodAgent) -> Container {
    Container {
        name: "agent-program".to_owned(),
        image: Some(agent.image.clone()),
        args: Some(vec!["install".to_owned(), AGENT_PROGRAMS.to_owned()]),
        resources: Some(agent_resources()),
        security_context: Some(unprivileged()),
        volume_mounts: Some(vec![mount("agent", AGENT_PROGRAMS, false)]),
        ..Container::default()
    }
}

fn agent_resources() -> ResourceRequirements {
    resources([("cpu", "5m"), ("memory", "16Mi")], [("memory", "64Mi")])
}

fn resources<const R: usize, const L: usize>(
    requests: [(&str, &str); R],
    limits: [(&str, &str); L],
) -> ResourceRequirements {
    let quantity = |(name, amount): (&str, &str)| (name.to_owned(), Quantity(amount.to_owned()));
    ResourceRequirements {
        requests: Some(requests.map(quantity).into()),
        limits: Some(limits.map(quantity).into()),
        claims: None,
    }
}

/// The security context that level `restricted` of Pod Security requires.
fn unprivileged() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readiness_probe_uses_the_port_of_readiness_py() {
        let line = format!("\nPORT = {READINESS_PORT}\n");
        assert!(include_str!("../../programs/readiness.py").contains(&line));
    }
}
