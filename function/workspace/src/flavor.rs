//! Reads a `WorkspaceFlavor`, which offers a machine by name in both placements.

use api::flavor::WorkspaceFlavorSpec;
use api::patterns;
use function_runtime::outcome::{Hold, Problem};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::validation::{Schema, Violation, Violations, given};
use serde_json::Value;
use thiserror::Error;

use crate::labels::API_VERSION;
use crate::quantity;

const KIND: &str = "WorkspaceFlavor";
const REQUIREMENT: &str = "flavor";
/// The prefix of NCCL's environment variables.
const NCCL: &str = "NCCL_";
/// The fields that pods need, and no other field implies.
const POD_FIELDS: [&str; 5] = ["image", "opencvVersion", "pytorchVersion", "cpu", "memory"];

static SPEC: Schema<WorkspaceFlavorSpec> = Schema::of("spec", patterns::message);

/// The half of a flavor that describes pods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pods<'a> {
    /// The container image.
    pub image: &'a str,
    /// The `OpenCV` release in the image.
    pub opencv_version: &'a str,
    /// The `PyTorch` release in the image.
    pub pytorch_version: &'a str,
    /// The CPUs of each pod.
    pub cpu: &'a str,
    /// The memory of each pod.
    pub memory: &'a str,
    /// The other fields of the flavor.
    pub flavor: &'a WorkspaceFlavorSpec,
}

impl<'a> Pods<'a> {
    /// The pods of a flavor; none if it is for EC2 only.
    pub fn of(flavor: &'a WorkspaceFlavorSpec) -> Option<Self> {
        Some(Self {
            image: flavor.image.as_deref()?,
            opencv_version: flavor.opencv_version.as_deref()?,
            pytorch_version: flavor.pytorch_version.as_deref()?,
            cpu: flavor.cpu.as_deref()?,
            memory: flavor.memory.as_deref()?,
            flavor,
        })
    }
}

/// The requirement for a flavor.
pub fn requirement(name: &str) -> Requirement {
    Requirement {
        name: REQUIREMENT.to_owned(),
        api_version: API_VERSION,
        kind: KIND,
        selector: Selector::Named(name.to_owned()),
    }
}

/// The flavor that Crossplane fetched. A flavor that cannot be read is not an error of the claim, so
/// the workspace is held.
pub fn of(request: &Request, name: &str) -> Result<WorkspaceFlavorSpec, Hold> {
    let name = name.to_owned();
    let found = match request.required(REQUIREMENT) {
        Required::Unresolved => return Err(Unusable::Unresolved { name }.into()),
        Required::Absent => return Err(Unusable::Absent { name }.into()),
        Required::Present(found) => found,
    };
    read(&given(found.get("spec")))
        .map_err(|violations| Unusable::Invalid { name, violations }.into())
}

/// Validates and reads a flavor. It also checks rules that a schema cannot express.
pub fn read(spec: &Value) -> Result<WorkspaceFlavorSpec, Violations> {
    let flavor = SPEC.read(spec)?;
    let mut violations = incomplete(spec, &flavor);
    let memory = flavor.memory.as_deref();
    if let Some(memory) = memory.filter(|memory| exceeds(&flavor.shm_size, memory)) {
        let problem = format!("counts as memory and must fit into spec.memory ({memory})");
        violations.push(Violation::new("spec.shmSize", problem));
    }
    let others = flavor.nccl.keys().filter(|name| !name.starts_with(NCCL));
    violations.extend(others.map(|name| {
        Violation::new(
            format!("spec.nccl.{name}"),
            format!("must begin with {NCCL}"),
        )
    }));
    Violations::into_result(violations)?;
    Ok(flavor)
}

/// The fields that are missing: a flavor describes pods, or instances on EC2, or both.
fn incomplete(spec: &Value, flavor: &WorkspaceFlavorSpec) -> Vec<Violation> {
    let is_set = |field: &&str| spec.get(field).is_some_and(|value| !value.is_null());
    let is_for_pods = POD_FIELDS.iter().any(is_set);
    if !is_for_pods && flavor.ec2.is_some() {
        return Vec::new();
    }
    let missing = POD_FIELDS.iter().filter(|field| !is_set(field));
    missing
        .map(|field| Violation::new(format!("spec.{field}"), "is required for pods"))
        .collect()
}

fn exceeds(shm: &str, memory: &str) -> bool {
    quantity::memory(shm) > quantity::memory(memory)
}

/// Why the flavor cannot be used.
#[derive(Clone, Debug, Error)]
enum Unusable {
    /// Crossplane has not fetched the flavor yet.
    #[error("waiting for Crossplane to fetch WorkspaceFlavor {name}")]
    Unresolved {
        /// The `WorkspaceFlavor`.
        name: String,
    },
    /// The flavor does not exist.
    #[error(
        "WorkspaceFlavor {name} does not exist: create it, or name another one in \
         spec.parameters.flavor or the Composition's input.cluster.defaultFlavor"
    )]
    Absent {
        /// The `WorkspaceFlavor`.
        name: String,
    },
    /// The flavor does not match its schema.
    #[error("WorkspaceFlavor {name} is not usable: {violations}")]
    Invalid {
        /// The `WorkspaceFlavor`.
        name: String,
        /// Violations of fields under `spec`.
        violations: Violations,
    },
}

impl Problem for Unusable {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } => "FlavorUnresolved",
            Self::Absent { .. } => "FlavorMissing",
            Self::Invalid { .. } => "FlavorInvalid",
        }
    }

    fn is_pending(&self) -> bool {
        matches!(self, Self::Unresolved { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn flavor() -> Value {
        json!({
            "image": "registry.acme.io/workspace@sha256:0",
            "opencvVersion": "4.8.0",
            "pytorchVersion": "1.13.1",
            "cpu": "4",
            "memory": "16Gi"
        })
    }

    #[test]
    fn a_flavor_whose_shared_memory_exceeds_its_memory_is_not_usable() {
        let mut spec = flavor();
        assert!(read(&spec).is_ok());
        spec["shmSize"] = json!("17Gi");
        assert_eq!(
            read(&spec).unwrap_err().to_string(),
            "spec.shmSize: counts as memory and must fit into spec.memory (16Gi)"
        );
    }

    /// A flavor that could set `PATH` or `LD_PRELOAD` could run its own code in pods.
    #[test]
    fn a_flavor_sets_no_other_variables_than_those_of_nccl() {
        let mut spec = flavor();
        spec["nccl"] = json!({"NCCL_DEBUG": "WARN", "LD_PRELOAD": "/tmp/x.so"});
        assert_eq!(
            read(&spec).unwrap_err().to_string(),
            "spec.nccl.LD_PRELOAD: must begin with NCCL_"
        );
    }

    #[test]
    fn a_flavor_for_ec2_only_needs_nothing_of_pods() {
        let spec = json!({"ec2": {"instanceTypes": ["g4dn.xlarge"]}});
        let flavor = read(&spec).unwrap();
        assert_eq!(Pods::of(&flavor), None);
    }

    #[test]
    fn a_flavor_with_half_of_a_pod_says_what_is_missing() {
        let spec = json!({"ec2": {"instanceTypes": ["g4dn.xlarge"]}, "image": "a", "cpu": "4",
                          "memory": "16Gi", "opencvVersion": "4.8.0"});
        assert_eq!(
            read(&spec).unwrap_err().to_string(),
            "spec.pytorchVersion: is required for pods"
        );
        let nothing = read(&json!({})).unwrap_err().to_string();
        assert!(
            nothing.starts_with("spec.cpu: is required for pods; "),
            "{nothing}"
        );
    }
}
