//! `cargo xtask codegen`: writes XRDs, CRDs, the schema of the function's input and the API
//! reference, from the types of the `api` crate.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

#[cfg(test)]
mod descriptions_tests;
mod fields;
mod kinds;
pub(crate) mod patterns;
mod reference;
mod xrds;

use api::dev_user::DevUserPolicy;
use api::flavor::FlavorPolicy;
use api::lease::SpotLease;
use api::policy::WorkspacePolicy;
use api::pool::SpotPool;
use api::provider_config::{ClusterProviderConfig, ProviderConfig, ProviderConfigUsage};
use api::record::WorkspaceRecord;
use clap::Args;
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

/// A file, by its path below the repository's root, with the contents that it must have.
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
        file(
            "xrds/gpudevworkspaces.platform.acme.io.yaml",
            &xrds::workspace()?,
        )?,
        file(
            "xrds/namespaced/gpudevworkspaceclaims.platform.acme.io.yaml",
            &xrds::namespaced_workspace()?,
        )?,
        file(
            "xrds/workspaceflavors.platform.acme.io.yaml",
            &xrds::flavor()?,
        )?,
        file("xrds/devusers.platform.acme.io.yaml", &xrds::dev_user()?)?,
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
        (
            "FlavorPolicy",
            "flavorpolicies",
            input_schema::<FlavorPolicy>(),
        ),
    ] {
        let group = api::POLICY_GROUP;
        let path = format!("package/function/input/{group}_{plural}.yaml");
        files.push(file(&path, &input(kind, plural, &schema))?);
    }
    for crd in [
        patterns::crd::<SpotPool>()?,
        patterns::crd::<SpotLease>()?,
        patterns::crd::<ProviderConfig>()?,
        patterns::crd::<ClusterProviderConfig>()?,
        patterns::crd::<ProviderConfigUsage>()?,
    ] {
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let path = format!("package/provider/crds/{}_{plural}.yaml", api::POOL_GROUP);
        files.push(file(&path, &crd)?);
    }
    files.push(file(
        "examples/namespaced/workspacerecords.platform.acme.io.yaml",
        &patterns::crd::<WorkspaceRecord>()?,
    )?);
    files.push(Generated {
        path: "docs/api.md".to_owned(),
        content: reference::document(&kinds::sections()?),
    });
    Ok(files)
}

fn file(path: &str, content: &Value) -> Result<Generated, Box<dyn Error>> {
    Ok(Generated {
        path: path.to_owned(),
        content: format!("{HEADER}{}", serde_yaml::to_string(content)?),
    })
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

/// The schema of a function's input, in the form of a CRD, because Crossplane packages contain it
/// in this form. The CRD is never installed.
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
        assert_eq!(files.len(), 14);
        check(&crate::root(), &files).unwrap();
    }

    #[test]
    fn the_claim_needs_no_parameter() {
        let xrd = xrds::workspace().unwrap();
        let parameters = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            ["properties"]["parameters"];
        assert_eq!(parameters["required"], json!(null));
        // A default of the schema would come before the policy's.
        let platform_decides = ["instanceType", "region", "capacityType", "flavor", "image"];
        for field in platform_decides {
            assert_eq!(
                parameters["properties"][field]["default"],
                json!(null),
                "{field}"
            );
        }
    }

    /// A manifest in git must fit both configurations, and so must every program that reads its
    /// status.
    #[test]
    fn a_claim_is_the_same_object_with_and_without_a_composite_behind_it() {
        let (mut with, mut without) = (
            xrds::workspace().unwrap(),
            xrds::namespaced_workspace().unwrap(),
        );
        // The rules on Crossplane's own fields, which have another place without claims.
        let [one, other] = [&mut with, &mut without].map(|xrd| {
            let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
            let spec = xrd.pointer_mut(spec).unwrap().as_object_mut().unwrap();
            let rules = spec.remove("x-kubernetes-validations").unwrap();
            rules.as_array().unwrap().len()
        });
        assert_eq!(one, other);
        assert_eq!(with["spec"]["versions"], without["spec"]["versions"]);
        assert_eq!(with["spec"]["group"], without["spec"]["group"]);
        assert_eq!(with["spec"]["claimNames"], without["spec"]["names"]);
    }

    /// If only one of the policies changed, the same claim would have two meanings.
    #[test]
    fn both_compositions_have_the_same_policy() {
        let read = |path: &str| -> Value {
            let text = std::fs::read_to_string(crate::root().join(path)).unwrap();
            serde_yaml::from_str(&text).unwrap()
        };
        let with = read("compositions/gpudevworkspaces.yaml");
        let without = read("compositions/namespaced/gpudevworkspaceclaims.yaml");
        assert_eq!(with["spec"]["pipeline"], without["spec"]["pipeline"]);
        assert_eq!(with["spec"]["mode"], without["spec"]["mode"]);
        let xrd = xrds::namespaced_workspace().unwrap();
        let mut of_aws = read("compositions/provider-aws/gpudevworkspaces-provider-aws.yaml");
        let policy = of_aws.pointer_mut("/spec/pipeline/0/input").unwrap();
        let policy = policy.as_object_mut().unwrap();
        assert_eq!(policy.remove("onDemand"), Some("ProviderAws".into()));
        assert!(policy.remove("onDemandProviderConfigRef").is_some());
        assert_eq!(with["spec"], of_aws["spec"]);
        assert_eq!(
            without["metadata"]["name"],
            xrd["spec"]["defaultCompositionRef"]["name"]
        );
        assert_eq!(
            without["spec"]["compositeTypeRef"]["kind"],
            xrd["spec"]["names"]["kind"]
        );
    }
}
