//! The XRDs of workspaces, flavors and users.

use std::error::Error;

use api::dev_user::DevUser;
use api::flavor::WorkspaceFlavor;
use api::workspace::GpuDevWorkspace;
use serde_json::{Value, json};

use super::patterns;

/// Crossplane's fields that select a policy by labels.
const SELECTORS: [&str; 2] = ["compositionSelector", "compositionRevisionSelector"];

/// The XRD of the composite and its claim. Crossplane adds its own fields to the schema.
pub(super) fn workspace() -> Result<Value, Box<dyn Error>> {
    Ok(json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("gpudevworkspaces.{}", api::WORKSPACE_GROUP)},
        "spec": {
            "group": api::WORKSPACE_GROUP,
            "names": {"kind": "GpuDevWorkspace", "plural": "gpudevworkspaces"},
            "claimNames": {
                "kind": "GpuDevWorkspaceClaim",
                "plural": "gpudevworkspaceclaims",
                "shortNames": ["gpuws"],
            },
            "connectionSecretKeys": ["host", "port", "user", "ssh", "known_hosts"],
            // With this policy a claim is deleted only after its instance is deleted.
            "defaultCompositeDeletePolicy": "Foreground",
            // Without this, Crossplane chooses any Composition of the kind.
            "defaultCompositionRef": {"name": "gpudevworkspaces"},
            "versions": [workspace_version(
                &SELECTORS.map(|field| refusal(field, &format!("!has(self.{field})"))),
            )?],
        },
    }))
}

/// The XRD of the configuration without claims: a namespaced composite of the same kind as the
/// claim. A manifest in git fits both configurations.
pub(super) fn namespaced_workspace() -> Result<Value, Box<dyn Error>> {
    let (kind, plural) = ("GpuDevWorkspaceClaim", "gpudevworkspaceclaims");
    Ok(json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", api::WORKSPACE_GROUP)},
        "spec": {
            "scope": "Namespaced",
            "group": api::WORKSPACE_GROUP,
            "names": {"kind": kind, "plural": plural, "shortNames": ["gpuws"]},
            "defaultCompositionRef": {"name": plural},
            "versions": [workspace_version(&SELECTORS.map(|field| {
                let field = format!("crossplane.{field}");
                refusal(&field, &format!("!has(self.crossplane) || !has(self.{field})"))
            }))?],
        },
    }))
}

/// Refuses a field by which a claim could leave the current policy. Crossplane merges the rules of
/// an XRD's `spec` into its CRDs, whose `spec` has the field.
fn refusal(field: &str, rule: &str) -> Value {
    let message = format!("{field} is refused: the platform chooses the policy of a workspace");
    json!({"rule": rule, "message": message})
}

/// The version of the workspace kind, with its columns, its schema and further rules on `spec`. Both
/// XRDs use it.
fn workspace_version(rules: &[Value]) -> Result<Value, Box<dyn Error>> {
    let crd = patterns::crd::<GpuDevWorkspace>()?;
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut spec = schema["properties"]["spec"].clone();
    spec["x-kubernetes-validations"] = json!(rules);
    Ok(json!({
        "name": api::VERSION,
        "served": true,
        "referenceable": true,
        "additionalPrinterColumns": [
            column("PHASE", ".status.phase"),
            column("MACHINE", ".status.machine"),
            // A column of type `date` shows a time to come as `<invalid>`.
            column("STOPS", ".status.lifecycle.stopsAt"),
            number_column("USD/H", ".status.cost.hourlyUsd"),
            column("SSH", ".status.ssh"),
            wide_column("OWNER", ".status.owner"),
            wide_column("ZONE", ".status.zone"),
            wide_column("INSTANCE", ".status.instanceId"),
            wide_column("MESSAGE", ".status.message"),
        ],
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "description": schema["description"],
            "required": ["spec"],
            "properties": {
                "spec": spec,
                "status": schema["properties"]["status"],
            },
        }},
    }))
}

/// The XRD of flavors. Only platform teams write flavors and users, so these kinds have no claims.
pub(super) fn flavor() -> Result<Value, Box<dyn Error>> {
    modern_xrd(
        &patterns::crd::<WorkspaceFlavor>()?,
        &["flavor", "flavors"],
        &[
            column("PLACEMENTS", ".status.placements"),
            column("GPU", ".status.gpu"),
            column("CPU", ".status.cpu"),
            column("MEMORY", ".status.memory"),
            number_column("EC2-USD/H", ".status.instanceHourlyUsd"),
            number_column("POD-USD/H", ".status.podHourlyUsd"),
            wide_column("TYPES", ".spec.ec2.instanceTypes"),
            wide_column("PYTORCH", ".spec.pytorchVersion"),
            wide_column("OPENCV", ".spec.opencvVersion"),
            wide_column("IMAGE", ".spec.image"),
        ],
    )
}

/// The XRD of users.
pub(super) fn dev_user() -> Result<Value, Box<dyn Error>> {
    modern_xrd(
        &patterns::crd::<DevUser>()?,
        &[],
        &[
            column("NAMESPACE", ".status.namespace"),
            column("PROTECTED", ".status.protected"),
            column("SUSPENDED", ".status.suspended"),
            column("MESSAGE", ".status.message"),
        ],
    )
}

fn column(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path})
}

fn number_column(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "number", "jsonPath": path})
}

/// A column of `kubectl get -o wide`.
fn wide_column(name: &str, path: &str) -> Value {
    let mut column = column(name, path);
    column["priority"] = json!(1);
    column
}

fn modern_xrd(
    crd: &Value,
    short_names: &[&str],
    columns: &[Value],
) -> Result<Value, Box<dyn Error>> {
    let names = &crd["spec"]["names"];
    let (kind, plural) = (&names["kind"], &names["plural"]);
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut properties = json!({"spec": schema["properties"]["spec"]});
    if let Some(status) = schema["properties"].get("status") {
        properties["status"] = status.clone();
    }
    let name = plural.as_str().ok_or("a kind without a plural")?;
    let mut names = json!({"kind": kind, "plural": plural});
    if !short_names.is_empty() {
        names["shortNames"] = json!(short_names);
    }
    Ok(json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("{name}.{}", api::WORKSPACE_GROUP)},
        "spec": {
            "scope": "Cluster",
            "group": api::WORKSPACE_GROUP,
            "names": names,
            "defaultCompositionRef": {"name": plural},
            "versions": [{
                "name": api::VERSION,
                "served": true,
                "referenceable": true,
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": schema["description"],
                    "required": ["spec"],
                    "properties": properties,
                }},
            }],
        },
    }))
}
