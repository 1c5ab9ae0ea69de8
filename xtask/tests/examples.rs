//! What users copy is valid: every file below `examples/`, by Crossplane's own
//! `crossplane resource validate`, without a cluster and without a registry.
//!
//! It knows claims by their XRD, and Kubernetes' own kinds. The first run builds the
//! CLI, in minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::binaries;
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use serde_json::Value;

/// Where this repository's kinds are defined; folders below them count too.
const DEFINED: [&str; 3] = ["xrds", "package/provider/crds", "package/function/input"];
/// Crossplane's own kinds that examples and packages hold.
const CROSSPLANE: [&str; 2] = ["environmentconfigs", "compositions"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Validates files or folders. Answers what the CLI found out about each object.
fn validate(name: &str, resources: &[PathBuf]) -> Vec<Value> {
    let cache = Cache::from_environment().unwrap();
    let built = binaries::ensure(&cache, &["crossplane"], &mut Progress::to_stderr())
        .unwrap_or_else(|error| panic!("no crossplane CLI: {error}\nis Go installed?"));
    let crds = binaries::source("crossplane-core")
        .unwrap()
        .join("cluster/crds");
    let mut extensions: Vec<PathBuf> = DEFINED.iter().map(|path| root().join(path)).collect();
    for kind in CROSSPLANE {
        extensions.push(crds.join(format!("apiextensions.crossplane.io_{kind}.yaml")));
    }
    let ran = Command::new(built.path("crossplane").unwrap())
        .args(["resource", "validate", "--output=json"])
        // Nothing is fetched: neither Crossplane's image nor packages.
        .arg("--crossplane-image=")
        .arg(format!("--cache-dir={}", folder(name).display()))
        .arg(listed(&extensions))
        .arg(listed(resources))
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| {
        panic!("{}", String::from_utf8_lossy(&ran.stderr));
    });
    said["resources"].as_array().cloned().unwrap_or_default()
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(",")
}

fn manifests(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(manifests(&path));
        } else if path.extension().is_some_and(|e| e == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Kinds that this repository or Crossplane defines must be known; those of other
/// projects, such as Argo CD, are held by tests against their own servers.
fn is_ours(resource: &Value) -> bool {
    let group = resource["apiVersion"].as_str().unwrap_or_default();
    let group = group.split('/').next().unwrap_or_default();
    group.ends_with("acme.io") || group.ends_with("crossplane.io")
}

#[test]
fn every_example_is_accepted_as_it_is() {
    for file in manifests(&root().join("examples")) {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display();
        let checked = validate("every", std::slice::from_ref(&file));
        let kinds = text
            .lines()
            .filter(|line| line.starts_with("kind: "))
            .count();
        assert_eq!(checked.len(), kinds, "{name}: not all of it was looked at");
        for resource in checked {
            let status = resource["status"].as_str().unwrap();
            let is_foreign = status == "missingSchema" && !is_ours(&resource);
            assert!(status == "valid" || is_foreign, "{name}: {resource:#}");
        }
    }
}

#[test]
fn compositions_give_the_function_an_input_that_it_takes() {
    let folder = folder("inputs");
    let mut count = 0;
    for file in manifests(&root().join("compositions")) {
        let text = fs::read_to_string(&file).unwrap();
        let composition: Value = serde_yaml::from_str(&text).unwrap();
        for step in composition["spec"]["pipeline"].as_array().unwrap() {
            let mut input = step["input"].clone();
            if input.is_object() {
                // The CLI wants a name, which an input has none of.
                input["metadata"] = serde_json::json!({"name": format!("input-{count}")});
                let text = serde_yaml::to_string(&input).unwrap();
                fs::write(folder.join(format!("{count}.yaml")), text).unwrap();
                count += 1;
            }
        }
    }
    let checked = validate("compositions", &[root().join("compositions"), folder]);
    assert!(count > 0 && checked.len() > count, "{checked:#?}");
    for resource in checked {
        assert_eq!(resource["status"], "valid", "{resource:#}");
    }
}

#[test]
fn a_misspelt_field_is_found_in_claims_and_in_kubernetes_own_kinds() {
    let folder = folder("misspelt");
    for (name, manifest) in [
        (
            "claim",
            "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\n\
             metadata: {name: a, namespace: b}\nspec: {parameters: {owner: a, instance: x}}\n",
        ),
        (
            "role",
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n\
             metadata: {name: a}\nrule: []\n",
        ),
    ] {
        fs::write(folder.join(format!("{name}.yaml")), manifest).unwrap();
    }
    let checked = validate("refused", &[folder]);
    let statuses: Vec<&Value> = checked.iter().map(|resource| &resource["status"]).collect();
    assert_eq!(statuses, ["invalid", "invalid"], "{checked:#?}");
}
