//! Users copy from `examples/`, so every file there must be valid. The tests run Crossplane's own
//! `crossplane resource validate`, without a cluster and without a registry.
//!
//! The command validates claims by their XRD, the inputs in Compositions by the function's package,
//! and Kubernetes' own kinds. The first run builds the CLI, which takes minutes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and says why"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use local_cluster::binaries;
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use serde_json::Value;

/// The schemas that are the same for all configurations.
const KINDS: [&str; 2] = ["package/provider/crds", "package/function/input"];
/// Examples that choose a Composition in the way that only claims allow.
const FOR_CLAIMS_ONLY: [&str; 2] = ["examples/gitops", "examples/provider-aws"];

/// The path of the CLI, and the folder of Crossplane's source.
static CROSSPLANE: LazyLock<(PathBuf, PathBuf)> = LazyLock::new(|| {
    let cache = Cache::from_environment().unwrap();
    let built = binaries::ensure(&cache, &["crossplane"], &Progress::to_stderr())
        .unwrap_or_else(|error| panic!("no crossplane CLI: {error}\nis Go installed?"));
    let cli = built.path("crossplane").unwrap().to_owned();
    (cli, binaries::source("crossplane-core").unwrap())
});

/// The XRDs of one configuration. A kind may be a claim in one configuration and a composite in
/// another.
struct Shape {
    name: String,
    xrds: Vec<PathBuf>,
    has_claims: bool,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.unwrap().to_path_buf()
}

/// The configuration with claims, and one for each subfolder of `xrds`, whose XRDs replace some of
/// the others.
fn shapes() -> Vec<Shape> {
    let claims = directly_in(&root().join("xrds"));
    let mut shapes = Vec::new();
    for folder in folders_in(&root().join("xrds")) {
        let own = directly_in(&folder);
        let names: Vec<Value> = own
            .iter()
            .map(|xrd| read(xrd)["spec"]["names"].clone())
            .collect();
        let is_kept = |xrd: &&PathBuf| {
            let claim = read(xrd)["spec"]["claimNames"]["plural"].clone();
            !names.iter().any(|name| name["plural"] == claim)
        };
        shapes.push(Shape {
            name: folder.file_name().unwrap().to_string_lossy().into_owned(),
            xrds: claims.iter().filter(is_kept).chain(&own).cloned().collect(),
            has_claims: false,
        });
    }
    shapes.push(Shape {
        name: "claims".into(),
        xrds: claims,
        has_claims: true,
    });
    shapes
}

impl Shape {
    /// Validates files or folders. Returns the CLI's result for each object.
    fn validate(&self, resources: &[PathBuf]) -> Vec<Value> {
        let (cli, crossplane) = &*CROSSPLANE;
        let mut extensions = self.xrds.clone();
        extensions.extend(KINDS.map(|path| root().join(path)));
        extensions.push(crossplane.join("cluster/crds"));
        let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fetched");
        let ran = Command::new(cli)
            .args(["resource", "validate", "--output=json"])
            // With an empty image, the CLI fetches neither Crossplane's image nor packages.
            .arg("--crossplane-image=")
            .arg(format!("--cache-dir={}", fetched.display()))
            .arg(listed(&extensions))
            .arg(listed(resources))
            .output()
            .unwrap();
        let said: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| {
            panic!("{}", String::from_utf8_lossy(&ran.stderr));
        });
        said["resources"].as_array().cloned().unwrap_or_default()
    }
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(",")
}

fn read(file: &Path) -> Value {
    serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let paths = sorted(folder).into_iter();
    paths.filter(|path| path.is_dir()).collect()
}

fn directly_in(folder: &Path) -> Vec<PathBuf> {
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|e| e == "yaml");
    sorted(folder).into_iter().filter(is_manifest).collect()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut files = directly_in(folder);
    files.extend(folders_in(folder).iter().flat_map(|folder| below(folder)));
    files
}

/// Whether this repository or Crossplane defines the kind. The CLI must know these kinds. Other
/// tests check the kinds of other projects, such as Argo CD, against their own servers.
fn is_ours(resource: &Value) -> bool {
    let group = resource["apiVersion"].as_str().unwrap_or_default();
    let group = group.split('/').next().unwrap_or_default();
    group.ends_with("acme.io") || group.ends_with("crossplane.io")
}

#[test]
fn every_example_is_accepted_as_it_is() {
    for shape in shapes() {
        let is_for = |file: &PathBuf| {
            let mut others = FOR_CLAIMS_ONLY.iter();
            shape.has_claims || !others.any(|folder| file.starts_with(root().join(folder)))
        };
        let mut files = below(&root().join("examples"));
        files.retain(is_for);
        let written: usize = files
            .iter()
            .map(|file| {
                let text = fs::read_to_string(file).unwrap();
                let kinds = text.lines().filter(|line| line.starts_with("kind: "));
                kinds.count()
            })
            .sum();
        let checked = shape.validate(&files);
        let (seen, name) = (checked.len(), &shape.name);
        assert!(seen >= written, "{name}: {seen} of {written} objects");
        for resource in checked {
            let status = resource["status"].as_str().unwrap();
            let is_foreign = status == "missingSchema" && !is_ours(&resource);
            assert!(status == "valid" || is_foreign, "{name}: {resource:#}");
        }
    }
}

#[test]
fn compositions_give_the_function_an_input_that_it_takes() {
    for shape in shapes() {
        let folder = root().join("compositions");
        let checked = shape.validate(&below(&folder));
        for kind in ["Composition", "WorkspacePolicy", "DevUserPolicy"] {
            assert!(checked.iter().any(|one| one["kind"] == kind), "no {kind}");
        }
        for resource in checked {
            assert_eq!(resource["status"], "valid", "{resource:#}");
        }
    }
}

#[test]
fn a_misspelt_field_is_found_in_claims_and_in_kubernetes_own_kinds() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("misspelt");
    fs::create_dir_all(&folder).unwrap();
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
    for shape in shapes() {
        let checked = shape.validate(std::slice::from_ref(&folder));
        let statuses: Vec<&Value> = checked.iter().map(|one| &one["status"]).collect();
        assert_eq!(statuses, ["invalid", "invalid"], "{checked:#?}");
    }
}
