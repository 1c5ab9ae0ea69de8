//! Chooses the settings of a workspace's pods: those of its flavor, with the claim's changes that
//! the flavor allows.

use api::cluster::{ChosenPods, FlavorOverrides};
use api::flavor::{AllowedOverrides, WorkspaceFlavorSpec};
use api::lifecycle::{PodAgent, PodAgentPolicy};
use api::policy::ClusterPolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};
use function_workspace::flavor::Pods;
use function_workspace::{image_digest, quantity};

mod queue;

/// Label of NVIDIA's GPU feature discovery with the product name of a node's GPUs.
const PRODUCT_LABEL: &str = "nvidia.com/gpu.product";

/// The number of pods that the claim asks for.
pub fn node_count(parameters: &WorkspaceParameters) -> i32 {
    parameters.distributed.as_ref().map_or(1, |d| d.nodes)
}

/// The flavor that the claim names, or else the default of the policy.
pub fn flavor<'a>(
    parameters: &'a WorkspaceParameters,
    cluster: &'a ClusterPolicy,
) -> Result<&'a str, Violations> {
    let name = parameters
        .flavor
        .as_ref()
        .unwrap_or(&cluster.default_flavor);
    match &cluster.allowed_flavors {
        Some(allowed) if !allowed.contains(name) => {
            Err(Violation::not_allowed("spec.parameters.flavor", name, allowed).into())
        }
        _ => Ok(name),
    }
}

/// The settings of a claim's pods. `is_bounded` is true from behaviour version v3 on. The error holds
/// all violations of the claim.
pub fn pods(
    parameters: &WorkspaceParameters,
    cluster: &ClusterPolicy,
    name: &str,
    flavor: &WorkspaceFlavorSpec,
    is_bounded: bool,
) -> Result<ChosenPods, Violations> {
    let Some(half) = Pods::of(flavor) else {
        let problem = format!(
            "WorkspaceFlavor {name} describes no pods, it is for placement EC2 only: choose another \
             flavor"
        );
        return Err(Violation::new("spec.parameters.flavor", problem).into());
    };
    let none = FlavorOverrides::default();
    let wishes = Wishes {
        flavor: name,
        asked: parameters.overrides.as_ref().unwrap_or(&none),
        allowed: &flavor.overrides,
    };
    let mut violations = Vec::new();
    violations.extend(software(parameters, name, half));
    violations.extend(nodes(parameters, cluster));
    let gpus = wishes.gpus(parameters, flavor, &mut violations);
    let mut pods = ChosenPods {
        flavor: name.to_owned(),
        nodes: node_count(parameters),
        image: wishes.image(half.image, &mut violations),
        opencv_version: half.opencv_version.to_owned(),
        pytorch_version: half.pytorch_version.to_owned(),
        cpu: wishes.amount(Amount::Cpu, half.cpu, &mut violations),
        memory: wishes.amount(Amount::Memory, half.memory, &mut violations),
        shm_size: wishes.amount(Amount::Shm, &flavor.shm_size, &mut violations),
        gpus,
        gpu_resource: flavor.gpu_resource.clone(),
        node_selector: {
            let product = flavor.gpu_product.iter();
            let product = product.map(|value| (PRODUCT_LABEL.to_owned(), value.clone()));
            flavor
                .node_selector
                .clone()
                .into_iter()
                .chain(product)
                .collect()
        },
        tolerations: flavor.tolerations.clone(),
        runtime_class_name: flavor.runtime_class_name.clone(),
        shared_volumes: flavor.shared_volumes.clone(),
        nccl: flavor.nccl.clone(),
        service_account_token: wishes.token(&mut violations),
        agent: cluster.agent.as_ref().map(agent),
        queue: queue::chosen(parameters, cluster.queue.as_ref(), &mut violations),
        scratch: is_bounded.then(|| flavor.scratch.clone()),
        size_permille: None,
        user_namespace: is_bounded && flavor.user_namespace,
    };
    pods.size_permille = size_permille(&pods, half).filter(|_| is_bounded);
    violations.extend(shm_within_memory(&pods));
    violations.extend(image_by_tag(parameters, cluster, &pods));
    Violations::into_result(violations)?;
    Ok(pods)
}

/// The agent of the policy, as pods run it.
fn agent(policy: &PodAgentPolicy) -> PodAgent {
    let seconds = policy.report_interval.length().as_secs();
    PodAgent {
        image: policy.image.clone(),
        report_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
    }
}

/// The size of a pod in thousandths of its flavor: the largest part of its GPUs, CPUs and memory, since
/// the rest of a node is of no use to others then. None for a pod that is not larger.
fn size_permille(pods: &ChosenPods, half: Pods<'_>) -> Option<u32> {
    let amounts = [
        (
            u64::try_from(pods.gpus).ok(),
            u64::try_from(half.flavor.gpus).ok(),
        ),
        (quantity::cpu(&pods.cpu), quantity::cpu(half.cpu)),
        (
            quantity::memory(&pods.memory),
            quantity::memory(half.memory),
        ),
    ];
    let parts = amounts.into_iter().filter_map(|(amount, own)| {
        let permille = amount?
            .saturating_mul(1000)
            .div_ceil(own.filter(|own| *own > 0)?);
        u32::try_from(permille).ok()
    });
    parts.max().filter(|largest| *largest > 1000)
}

/// Refuses releases that the flavor's image does not have.
fn software(parameters: &WorkspaceParameters, name: &str, half: Pods<'_>) -> Vec<Violation> {
    let differs = |asked: &Option<String>, brings: &str, field: &str| {
        let asked = asked.as_ref()?;
        (asked != brings).then(|| {
            let problem = format!(
                "flavor {name} brings {brings}: leave it out, or choose a flavor that brings {asked}"
            );
            Violation::new(format!("spec.parameters.{field}"), problem)
        })
    };
    let lacks_contrib = parameters.opencv_contrib && !half.flavor.opencv_contrib;
    let contrib = lacks_contrib.then(|| {
        let problem = format!(
            "the OpenCV of flavor {name} has no contrib modules: leave it out, or choose a flavor \
             with opencvContrib"
        );
        Violation::new("spec.parameters.opencvContrib", problem)
    });
    [
        contrib,
        differs(
            &parameters.opencv_version,
            half.opencv_version,
            "opencvVersion",
        ),
        differs(
            &parameters.pytorch_version,
            half.pytorch_version,
            "pytorchVersion",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn nodes(parameters: &WorkspaceParameters, cluster: &ClusterPolicy) -> Option<Violation> {
    let nodes = parameters.distributed.as_ref()?.nodes;
    let most = cluster.max_nodes;
    (nodes > most).then(|| {
        let problem = format!("must be at most {most}, the policy's cluster.maxNodes");
        Violation::new("spec.parameters.distributed.nodes", problem)
    })
}

fn shm_within_memory(pods: &ChosenPods) -> Option<Violation> {
    let (shm, memory) = (
        quantity::memory(&pods.shm_size),
        quantity::memory(&pods.memory),
    );
    (shm? > memory?).then(|| {
        let problem = format!(
            "/dev/shm ({}) counts as memory and must fit into it ({})",
            pods.shm_size, pods.memory
        );
        Violation::new("spec.parameters.overrides", problem)
    })
}

/// The image, if it must be named by digest and is not.
fn image_by_tag(
    parameters: &WorkspaceParameters,
    cluster: &ClusterPolicy,
    pods: &ChosenPods,
) -> Option<Violation> {
    let is_allowed = !cluster.require_image_digest || image_digest::is_in(&pods.image);
    let overrides = parameters.overrides.as_ref();
    let is_the_claims = overrides.is_some_and(|overrides| overrides.image.is_some());
    let (path, field) = if is_the_claims {
        ("spec.parameters.overrides.image", "spec.overrides.images")
    } else {
        ("spec.parameters.flavor", "spec.image")
    };
    (!is_allowed).then(|| {
        let problem = format!(
            "{field} of WorkspaceFlavor {flavor} has {image}, and the policy's \
             cluster.requireImageDigest wants a digest: choose another flavor, or have the platform \
             team write {field} as name@sha256:…",
            flavor = pods.flavor,
            image = pods.image,
        );
        Violation::new(path, problem)
    })
}

/// An amount that a claim may change.
#[derive(Clone, Copy)]
enum Amount {
    Cpu,
    Memory,
    Shm,
}

/// The claim's changes, and those that its flavor allows.
struct Wishes<'a> {
    flavor: &'a str,
    asked: &'a FlavorOverrides,
    allowed: &'a AllowedOverrides,
}

impl Wishes<'_> {
    fn amount(&self, amount: Amount, own: &str, violations: &mut Vec<Violation>) -> String {
        let (field, asked, most, read): (_, _, _, fn(&str) -> Option<u64>) = match amount {
            Amount::Cpu => ("cpu", &self.asked.cpu, &self.allowed.max_cpu, quantity::cpu),
            Amount::Memory => (
                "memory",
                &self.asked.memory,
                &self.allowed.max_memory,
                quantity::memory,
            ),
            Amount::Shm => (
                "shmSize",
                &self.asked.shm_size,
                &self.allowed.max_shm_size,
                quantity::memory,
            ),
        };
        let Some(asked) = asked else {
            return own.to_owned();
        };
        match most {
            None => violations.push(self.fixed(field)),
            Some(most) if read(asked) > read(most) => {
                violations.push(self.beyond(field, most));
            }
            Some(_) => {}
        }
        asked.clone()
    }

    fn gpus(
        &self,
        parameters: &WorkspaceParameters,
        flavor: &WorkspaceFlavorSpec,
        violations: &mut Vec<Violation>,
    ) -> i32 {
        let per_node = parameters
            .distributed
            .as_ref()
            .and_then(|d| d.gpus_per_node);
        let (path, asked) = match (per_node, self.asked.gpus) {
            (Some(gpus), _) => ("spec.parameters.distributed.gpusPerNode", gpus),
            (None, Some(gpus)) => ("spec.parameters.overrides.gpus", gpus),
            (None, None) => return flavor.gpus,
        };
        let name = self.flavor;
        match self.allowed.max_gpus {
            _ if asked == flavor.gpus => {}
            // A pod without a GPU would still take a place on a GPU node, and NVIDIA's runtime
            // shows all GPUs of the node to an image that asks for them.
            Some(_) if asked == 0 => violations.push(Violation::new(
                path,
                format!(
                    "must be at least 1: WorkspaceFlavor {name} is for pods with GPUs; choose a \
                     flavor without"
                ),
            )),
            Some(most) if asked <= most => {}
            Some(most) => violations.push(Violation::new(
                path,
                format!("must be at most {most}, the overrides.maxGpus of WorkspaceFlavor {name}"),
            )),
            None => violations.push(Violation::new(
                path,
                format!(
                    "WorkspaceFlavor {name} has {} and does not allow another number",
                    flavor.gpus
                ),
            )),
        }
        asked
    }

    fn image(&self, own: &str, violations: &mut Vec<Violation>) -> String {
        let Some(asked) = &self.asked.image else {
            return own.to_owned();
        };
        if !self.allowed.images.contains(asked) {
            violations.push(self.fixed("image"));
        }
        asked.clone()
    }

    fn token(&self, violations: &mut Vec<Violation>) -> bool {
        let asked = self.asked.service_account_token;
        if asked && !self.allowed.service_account_token {
            violations.push(self.fixed("serviceAccountToken"));
        }
        asked
    }

    fn fixed(&self, field: &str) -> Violation {
        let problem = format!(
            "WorkspaceFlavor {} does not allow it: leave it out, or choose another flavor",
            self.flavor
        );
        Violation::new(format!("spec.parameters.overrides.{field}"), problem)
    }

    fn beyond(&self, field: &str, most: &str) -> Violation {
        let problem = format!(
            "must be at most {most}, as WorkspaceFlavor {} says",
            self.flavor
        );
        Violation::new(format!("spec.parameters.overrides.{field}"), problem)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The pods of a claim with these overrides, of a flavor with one GPU, 4 CPUs and 16 GiB.
    fn chosen(overrides: &Value, is_bounded: bool) -> Result<ChosenPods, String> {
        let flavor = json!({
            "image": "registry.acme.example/workspace:cuda", "opencvVersion": "4.8.0",
            "pytorchVersion": "2.9.1", "cpu": "4", "memory": "16Gi", "gpus": 1,
            "overrides": {"maxCpu": "32", "maxMemory": "128Gi", "maxGpus": 4}
        });
        let claim = json!({"owner": "alice", "overrides": overrides});
        let cluster = serde_json::from_value(json!({"defaultFlavor": "t4"})).unwrap();
        let claim = serde_json::from_value(claim).unwrap();
        let flavor = serde_json::from_value(flavor).unwrap();
        pods(&claim, &cluster, "t4", &flavor, is_bounded).map_err(|refused| refused.to_string())
    }

    #[test]
    fn larger_pods_cost_as_many_times_more() {
        let size = |overrides: Value| chosen(&overrides, true).unwrap().size_permille;
        assert_eq!(size(json!({})), None);
        assert_eq!(size(json!({"cpu": "2", "memory": "8Gi"})), None);
        assert_eq!(size(json!({"gpus": 4})), Some(4000));
        assert_eq!(size(json!({"gpus": 2, "memory": "40Gi"})), Some(2500));
        assert_eq!(size(json!({"cpu": "4100m"})), Some(1025));
        let earlier = chosen(&json!({"gpus": 4}), false).unwrap();
        assert_eq!(
            earlier.size_permille, None,
            "pods that run keep their settings"
        );
    }

    #[test]
    fn nobody_takes_a_gpu_node_without_asking_for_a_gpu() {
        assert_eq!(
            chosen(&json!({"gpus": 0}), true).unwrap_err(),
            "spec.parameters.overrides.gpus: must be at least 1: WorkspaceFlavor t4 is for pods with \
             GPUs; choose a flavor without"
        );
    }
}
