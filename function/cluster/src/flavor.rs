//! The kind `WorkspaceFlavor`. The function composes nothing for a flavor and reports whether
//! workspaces can use it.

use std::time::Duration;

use api::WORKSPACE_GROUP;
use api::flavor::WorkspaceFlavorSpec;
use api::patterns;
use function_runtime::composite::Composite;
use function_runtime::desired::Desired;
use function_runtime::kind::{GroupKind, Kind};
use function_runtime::request::Request;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response};
use function_runtime::validation::{Schema, Violation, Violations};
use serde_json::{Value, json};

use crate::quantity;

/// The name of the kind.
pub const KIND: &str = "WorkspaceFlavor";
/// The result depends on the flavor only, so it needs no early call.
const TTL: Duration = Duration::from_hours(1);
/// The prefix of NCCL's environment variables.
const NCCL: &str = "NCCL_";

static SPEC: Schema<WorkspaceFlavorSpec> = Schema::of("spec", patterns::message);

/// The kind `WorkspaceFlavor`.
pub struct WorkspaceFlavor;

impl Kind for WorkspaceFlavor {
    fn group_kinds(&self) -> &'static [GroupKind] {
        const {
            &[GroupKind {
                group: WORKSPACE_GROUP,
                kind: "WorkspaceFlavor",
            }]
        }
    }

    fn owns(&self, _: &str) -> bool {
        false
    }

    fn render(&self, _: &Request, composite: Composite<'_>) -> Response {
        render(composite)
    }
}

/// Reports whether the flavor is usable.
fn render(composite: Composite<'_>) -> Response {
    let none = json!({});
    let verdict = read(composite.at(&["spec"]).unwrap_or(&none));
    let condition = match &verdict {
        Ok(_) => Condition::is_true(CONFIG_RESOLVED, "Usable"),
        Err(violations) => {
            Condition::is_false(CONFIG_RESOLVED, "FlavorInvalid", violations.to_string())
        }
    };
    let desired = Desired {
        ready: Some(verdict.is_ok()),
        ..Desired::default()
    };
    Response {
        conditions: vec![condition],
        ..Response::desiring(TTL, desired)
    }
}

/// Validates and reads a flavor. It also checks rules that a schema cannot express.
pub fn read(spec: &Value) -> Result<WorkspaceFlavorSpec, Violations> {
    let flavor = SPEC.read(spec)?;
    let mut violations = Vec::new();
    if quantity::memory(&flavor.shm_size) > quantity::memory(&flavor.memory) {
        let problem = format!(
            "counts as memory and must fit into spec.memory ({})",
            flavor.memory
        );
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
