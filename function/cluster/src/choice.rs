//! Chooses the settings of a workspace's pods: those of its flavor, with the claim's changes that
//! the flavor allows.

use api::cluster::{ChosenPods, ChosenQueue, FlavorOverrides};
use api::flavor::{AllowedOverrides, WorkspaceFlavorSpec};
use api::policy::{ClusterPolicy, QueuePolicy};
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};
use function_workspace::image_digest;

use crate::quantity;

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
            let problem = format!("{name} is not allowed; allowed are {}", allowed.join(", "));
            Err(Violation::new("spec.parameters.flavor", problem).into())
        }
        _ => Ok(name),
    }
}

/// The settings of a claim's pods. The error holds all violations of the claim.
pub fn pods(
    parameters: &WorkspaceParameters,
    cluster: &ClusterPolicy,
    name: &str,
    flavor: &WorkspaceFlavorSpec,
) -> Result<ChosenPods, Violations> {
    let none = FlavorOverrides::default();
    let wishes = Wishes {
        flavor: name,
        asked: parameters.overrides.as_ref().unwrap_or(&none),
        allowed: &flavor.overrides,
    };
    let mut violations = Vec::new();
    violations.extend(software(parameters, name, flavor));
    violations.extend(nodes(parameters, cluster));
    let gpus = wishes.gpus(parameters, flavor, &mut violations);
    let pods = ChosenPods {
        flavor: name.to_owned(),
        nodes: node_count(parameters),
        image: wishes.image(flavor, &mut violations),
        opencv_version: flavor.opencv_version.clone(),
        pytorch_version: flavor.pytorch_version.clone(),
        cpu: wishes.amount(Amount::Cpu, &flavor.cpu, &mut violations),
        memory: wishes.amount(Amount::Memory, &flavor.memory, &mut violations),
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
        agent: cluster.agent.clone(),
        queue: queue(parameters, cluster.queue.as_ref(), &mut violations),
    };
    violations.extend(shm_within_memory(&pods));
    violations.extend(image_by_tag(parameters, cluster, &pods));
    Violations::into_result(violations)?;
    Ok(pods)
}

/// Refuses releases that the flavor's image does not have.
fn software(
    parameters: &WorkspaceParameters,
    name: &str,
    flavor: &WorkspaceFlavorSpec,
) -> Vec<Violation> {
    let differs = |asked: &Option<String>, brings: &str, field: &str| {
        let asked = asked.as_ref()?;
        (asked != brings).then(|| {
            let problem = format!(
                "flavor {name} brings {brings}: leave it out, or choose a flavor that brings {asked}"
            );
            Violation::new(format!("spec.parameters.{field}"), problem)
        })
    };
    [
        differs(
            &parameters.opencv_version,
            &flavor.opencv_version,
            "opencvVersion",
        ),
        differs(
            &parameters.pytorch_version,
            &flavor.pytorch_version,
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

fn queue(
    parameters: &WorkspaceParameters,
    policy: Option<&QueuePolicy>,
    violations: &mut Vec<Violation>,
) -> Option<ChosenQueue> {
    let asked = parameters.queue.as_ref();
    let Some(policy) = policy else {
        if asked.is_some() {
            let problem = "the policy has no cluster.queue: leave it out";
            violations.push(Violation::new("spec.parameters.queue", problem));
        }
        return None;
    };
    let mut allow = |field: &str, asked: &Option<String>, allowed: Option<&[String]>| {
        let asked = asked.as_ref()?;
        if let Some(allowed) = allowed
            && !allowed.contains(asked)
        {
            let problem = match allowed {
                [] => "must be left out: the policy allows none".to_owned(),
                _ => format!("{asked} is not allowed; allowed are {}", allowed.join(", ")),
            };
            violations.push(Violation::new(
                format!("spec.parameters.queue.{field}"),
                problem,
            ));
        }
        Some(asked.clone())
    };
    let default = QueueNames {
        name: asked.and_then(|q| q.name.clone()),
        class: asked.and_then(|q| q.priority_class.clone()),
    };
    let only: Vec<String> = policy.default_priority_class.iter().cloned().collect();
    let classes = policy.allowed_priority_classes.as_deref().unwrap_or(&only);
    let name = allow("name", &default.name, policy.allowed.as_deref());
    let class = allow("priorityClass", &default.class, Some(classes));
    Some(ChosenQueue {
        name: name.unwrap_or_else(|| policy.default.clone()),
        priority_class: class.or_else(|| policy.default_priority_class.clone()),
    })
}

struct QueueNames {
    name: Option<String>,
    class: Option<String>,
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

    fn image(&self, flavor: &WorkspaceFlavorSpec, violations: &mut Vec<Violation>) -> String {
        let Some(asked) = &self.asked.image else {
            return flavor.image.clone();
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
