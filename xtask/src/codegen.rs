//! `cargo xtask codegen`: XRDs, CRDs and the function input's schema, from the
//! types of the `api` crate.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use api::dev_user::{DevUser, DevUserPolicy};
use api::flavor::WorkspaceFlavor;
use api::lease::SpotLease;
use api::policy::WorkspacePolicy;
use api::pool::SpotPool;
use api::provider_config::{ClusterProviderConfig, ProviderConfig, ProviderConfigUsage};
use api::workspace::GpuDevWorkspace;
use clap::Args;
use kube::CustomResourceExt;
use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

const HEADER: &str = "# Generated from api/ by `cargo xtask codegen`. Do not edit.\n";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail when a committed file differs from the types
    #[arg(long)]
    check: bool,
}

/// A file below the repository's root, and what it must hold.
struct Generated {
    path: String,
    content: String,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let root = crate::root();
    let outcome = generate().and_then(|files| {
        if arguments.check {
            check(&root, &files)
        } else {
            write(&root, &files)
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path, files: &[Generated]) -> Result<(), Box<dyn Error>> {
    for file in files {
        let path = root.join(&file.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, &file.content)?;
        println!("{}", file.path);
    }
    Ok(())
}

fn check(root: &Path, files: &[Generated]) -> Result<(), Box<dyn Error>> {
    let differs = |file: &&Generated| {
        std::fs::read_to_string(root.join(&file.path)).ok().as_ref() != Some(&file.content)
    };
    let drifted: Vec<&str> = files
        .iter()
        .filter(differs)
        .map(|f| f.path.as_str())
        .collect();
    if drifted.is_empty() {
        return Ok(());
    }
    let drifted = drifted.join(", ");
    Err(format!("{drifted}: not what api/ says; run `cargo xtask codegen` and commit").into())
}

fn generate() -> Result<Vec<Generated>, Box<dyn Error>> {
    let mut files = vec![
        file("xrds/gpudevworkspaces.platform.acme.io.yaml", &xrd()?)?,
        file(
            "xrds/workspaceflavors.platform.acme.io.yaml",
            &flavor_xrd()?,
        )?,
        file("xrds/devusers.platform.acme.io.yaml", &dev_user_xrd()?)?,
    ];
    for (kind, plural, schema) in [
        (
            "WorkspacePolicy",
            "workspacepolicies",
            input_schema::<WorkspacePolicy>(),
        ),
        (
            "DevUserPolicy",
            "devuserpolicies",
            input_schema::<DevUserPolicy>(),
        ),
    ] {
        let group = api::POLICY_GROUP;
        let path = format!("package/function/input/{group}_{plural}.yaml");
        files.push(file(&path, &input(kind, plural, &schema))?);
    }
    for crd in [
        serde_json::to_value(SpotPool::crd())?,
        serde_json::to_value(SpotLease::crd())?,
        serde_json::to_value(ProviderConfig::crd())?,
        serde_json::to_value(ClusterProviderConfig::crd())?,
        serde_json::to_value(ProviderConfigUsage::crd())?,
    ] {
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let path = format!("package/provider/crds/{}_{plural}.yaml", api::POOL_GROUP);
        files.push(file(&path, &crd)?);
    }
    Ok(files)
}

fn file(path: &str, content: &Value) -> Result<Generated, Box<dyn Error>> {
    Ok(Generated {
        path: path.to_owned(),
        content: format!("{HEADER}{}", serde_yaml::to_string(content)?),
    })
}

/// The composite and its claim. Crossplane adds its own fields to the schema.
fn xrd() -> Result<Value, Box<dyn Error>> {
    let crd = serde_json::to_value(GpuDevWorkspace::crd())?;
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
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
            // A claim is gone when its instance is, not before.
            "defaultCompositeDeletePolicy": "Foreground",
            // Without it Crossplane draws one of all Compositions of the kind.
            "defaultCompositionRef": {"name": "gpudevworkspaces"},
            "versions": [{
                "name": api::VERSION,
                "served": true,
                "referenceable": true,
                "additionalPrinterColumns": [
                    column("PHASE", ".status.phase"),
                    column("OWNER", ".spec.parameters.owner"),
                    column("TYPE", ".status.instanceType"),
                    column("INSTANCE", ".status.instanceId"),
                    column("FLAVOR", ".status.pods.flavor"),
                    column("SSH", ".status.ssh"),
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "A GPU machine for one developer.",
                    "required": ["spec"],
                    "properties": {
                        "spec": schema["properties"]["spec"],
                        "status": schema["properties"]["status"],
                    },
                }},
            }],
        },
    }))
}

/// Flavors and users have no claims: platform teams write them.
fn flavor_xrd() -> Result<Value, Box<dyn Error>> {
    modern_xrd(
        &serde_json::to_value(WorkspaceFlavor::crd())?,
        "What pods a platform team offers.",
        &["flavor", "flavors"],
        &[
            column("CPU", ".spec.cpu"),
            column("MEMORY", ".spec.memory"),
            column("GPUS", ".spec.gpus"),
            column("PYTORCH", ".spec.pytorchVersion"),
            column("OPENCV", ".spec.opencvVersion"),
            column("IMAGE", ".spec.image"),
        ],
    )
}

fn dev_user_xrd() -> Result<Value, Box<dyn Error>> {
    modern_xrd(
        &serde_json::to_value(DevUser::crd())?,
        "A person, and a namespace that is theirs alone.",
        &[],
        &[
            column("NAMESPACE", ".status.namespace"),
            column("PROTECTED", ".status.protected"),
            column("MESSAGE", ".status.message"),
        ],
    )
}

fn column(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path})
}

fn modern_xrd(
    crd: &Value,
    description: &str,
    short_names: &[&str],
    columns: &[Value],
) -> Result<Value, Box<dyn Error>> {
    let names = &crd["spec"]["names"];
    let (kind, plural) = (&names["kind"], &names["plural"]);
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let mut properties = json!({"spec": schema["spec"]});
    if let Some(status) = schema.get("status") {
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
                    "description": description,
                    "required": ["spec"],
                    "properties": properties,
                }},
            }],
        },
    }))
}

fn input_schema<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .into_generator();
    let mut schema = Value::from(generator.into_root_schema_for::<T>());
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
        schema.remove("additionalProperties");
    }
    schema
}

/// A function's input, in the form of a CRD, as Crossplane's packages carry it. It
/// is never installed.
fn input(kind: &str, plural: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", api::POLICY_GROUP)},
        "spec": {
            "group": api::POLICY_GROUP,
            "names": {
                "categories": ["crossplane"],
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": "Namespaced",
            "versions": [{
                "name": api::VERSION,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_schemas_are_what_the_types_say() {
        let files = generate().unwrap();
        assert_eq!(files.len(), 10);
        check(&crate::root(), &files).unwrap();
    }

    #[test]
    fn the_claim_needs_an_owner_and_nothing_else() {
        let xrd = xrd().unwrap();
        let parameters = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            ["properties"]["parameters"];
        assert_eq!(parameters["required"], json!(["owner"]));
        assert_eq!(
            parameters["properties"]["instanceType"]["default"],
            "g4dn.xlarge"
        );
        assert_eq!(parameters["properties"]["region"]["default"], "us-east-1");
    }
}
