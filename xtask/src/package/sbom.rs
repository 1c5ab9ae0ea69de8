//! The bill of materials of a package's program, in the format `CycloneDX`, from Cargo's metadata.
//!
//! The bill lists what is linked into the program: no tests, no build scripts, no procedural
//! macros. It also lists the image's file of certificate authorities. It contains neither a time nor
//! a random serial number, so that the same sources give the same file.
//!
//! This file writes the format itself. The crate for the format (cyclonedx-bom) enables features of
//! `time` and `uuid`, and the workspace's programs would be compiled with these features, too.
//! `tests/package` checks the files with `CycloneDX`'s own schema.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::authorities;
use super::compile::Source;
use super::contents::Package;
use super::image::sha256;
use super::platform::Platform;
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Writes the bill of materials of a package's program for a platform.
pub(super) fn write(
    source: &Source,
    package: &Package,
    platform: Platform,
    to: &Path,
) -> Outcome<()> {
    let Some(program) = package.program else {
        return Ok(());
    };
    let metadata = metadata(&source.root, platform)?;
    let bill = serde_json::to_string_pretty(&bill(&metadata, program)?)?;
    fs::write(to, bill + "\n")?;
    Ok(())
}

fn metadata(root: &Path, platform: Platform) -> Outcome<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root)
        .args(["metadata", "--format-version=1", "--locked"])
        .args(["--filter-platform", platform.triple()]);
    Ok(serde_json::from_str(&output(&mut cargo)?)?)
}

/// The bill of the crate with the program's name. The features are those of the whole workspace, as
/// in the build.
fn bill(metadata: &Value, program: &str) -> Outcome<Value> {
    let graph = Graph::of(metadata)?;
    let named = |(_, package): &(&&str, &&Value)| package["name"] == program;
    let root = graph.packages.iter().find(named).map(|(id, _)| *id);
    let root = root.ok_or_else(|| format!("no crate is named {program}"))?;
    let linked = graph.linked(root);
    let libraries = linked.iter().filter(|id| **id != root);
    let mut components: Vec<Value> = libraries.map(|id| graph.component(id, "library")).collect();
    let mut dependencies: Vec<Value> = linked
        .iter()
        .map(|id| {
            let direct: Vec<String> = graph.direct(id).map(|id| graph.reference(id)).collect();
            json!({"ref": graph.reference(id), "dependsOn": direct})
        })
        .collect();
    components.push(graph.authorities()?);
    dependencies.push(json!({"ref": authorities::PATH, "dependsOn": []}));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": graph.component(root, "application")},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Cargo's resolved dependencies, by Cargo's ids of packages.
struct Graph<'a> {
    packages: BTreeMap<&'a str, &'a Value>,
    nodes: BTreeMap<&'a str, &'a Value>,
}

impl<'a> Graph<'a> {
    fn of(metadata: &'a Value) -> Outcome<Self> {
        let by_id = |list: &'a Value| -> Outcome<BTreeMap<&'a str, &'a Value>> {
            let list = list.as_array().ok_or("cargo metadata: no list")?;
            let named = list
                .iter()
                .map(|one| (one["id"].as_str().unwrap_or_default(), one));
            Ok(named.collect())
        };
        Ok(Self {
            packages: by_id(&metadata["packages"])?,
            nodes: by_id(&metadata["resolve"]["nodes"])?,
        })
    }

    /// The package itself and all packages that it is linked with, in the order of ids.
    fn linked(&self, root: &'a str) -> BTreeSet<&'a str> {
        let mut linked = BTreeSet::new();
        let mut next = vec![root];
        while let Some(id) = next.pop() {
            if linked.insert(id) {
                next.extend(self.direct(id));
            }
        }
        linked
    }

    fn direct(&self, id: &str) -> impl Iterator<Item = &'a str> {
        let listed = self.nodes.get(id).and_then(|node| node["deps"].as_array());
        let dependencies = listed.into_iter().flatten().filter(|dependency| {
            let kinds = dependency["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        });
        let ids = dependencies.filter_map(|dependency| dependency["pkg"].as_str());
        let ids: BTreeSet<&str> = ids.filter(|id| !self.is_macro(id)).collect();
        ids.into_iter()
    }

    /// Whether a package is a procedural macro. Such a package runs in the compiler and is not
    /// linked.
    fn is_macro(&self, id: &str) -> bool {
        let targets = self.packages.get(id).and_then(|p| p["targets"].as_array());
        targets.into_iter().flatten().any(|target| {
            let kinds = target["kind"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
        })
    }

    fn reference(&self, id: &str) -> String {
        let (name, version) = self.name(id);
        format!("{name}@{version}")
    }

    fn name(&self, id: &str) -> (&'a str, &'a str) {
        let text = |key: &str| {
            let value = self.packages.get(id).map(|package| &package[key]);
            value.and_then(|value| value.as_str()).unwrap_or_default()
        };
        (text("name"), text("version"))
    }

    /// The file of certificate authorities, with the version of the crate that has them.
    fn authorities(&self) -> Outcome<Value> {
        let own = env!("CARGO_PKG_NAME");
        let id = self
            .packages
            .iter()
            .filter(|(_, package)| package["name"] == own)
            .flat_map(|(id, _)| self.direct(id))
            .find(|id| self.name(id).0 == authorities::CRATE)
            .ok_or_else(|| format!("{own} does not depend on {}", authorities::CRATE))?;
        let mut component = self.component(id, "file");
        component["bom-ref"] = json!(authorities::PATH);
        component["name"] = json!(authorities::PATH);
        component["hashes"] = json!([{
            "alg": "SHA-256",
            "content": sha256(authorities::PEM.as_bytes()),
        }]);
        Ok(component)
    }

    fn component(&self, id: &str, kind: &str) -> Value {
        let (name, version) = self.name(id);
        let package = self.packages.get(id).copied().unwrap_or(&Value::Null);
        let mut component = json!({
            "type": kind,
            "bom-ref": self.reference(id),
            "name": name,
            "version": version,
        });
        if let Some(licence) = package["license"].as_str() {
            // In Cargo's older form, a slash separates alternatives.
            let expression = licence.replace('/', " OR ");
            component["licenses"] = json!([{"expression": expression}]);
        }
        // This workspace's crates are in no registry, so they have no package URL.
        if !package["source"].is_null() {
            let version = version.replace('+', "%2B");
            component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
        }
        component
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::contents::PACKAGES;

    fn package(name: &str, kind: &str) -> Value {
        json!({
            "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
            "source": "registry", "targets": [{"kind": [kind]}],
        })
    }

    fn node(name: &str, dependencies: &[(&str, Value)]) -> Value {
        let dependencies: Vec<Value> = dependencies
            .iter()
            .map(|(id, kind)| json!({"pkg": id, "dep_kinds": [{"kind": kind}]}))
            .collect();
        json!({"id": name, "deps": dependencies})
    }

    #[test]
    fn only_what_is_linked_into_the_program_is_listed() {
        let metadata = json!({
            "packages": [
                package("program", "bin"), package("library", "lib"), package("deep", "lib"),
                package("derive", "proc-macro"), package("test", "lib"), package("build", "lib"),
                package("xtask", "bin"), package("webpki-root-certs", "lib"),
            ],
            "resolve": {"nodes": [
                node("program", &[
                    ("library", json!(null)), ("derive", json!(null)),
                    ("test", json!("dev")), ("build", json!("build")),
                ]),
                node("library", &[("deep", json!(null))]),
                node("deep", &[]), node("derive", &[("build", json!(null))]),
                node("test", &[]), node("build", &[]), node("webpki-root-certs", &[]),
                node("xtask", &[("webpki-root-certs", json!(null))]),
            ]},
        });
        let bill = bill(&metadata, "program").unwrap();
        let components = bill["components"].as_array().unwrap();
        let names: Vec<&Value> = components.iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["deep", "library", authorities::PATH]);
        assert_eq!(components[2]["version"], "1.0.0");
        assert_eq!(
            components[0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        let root = &bill["dependencies"][2];
        assert_eq!(
            *root,
            json!({"ref": "program@1.0.0", "dependsOn": ["library@1.0.0"]})
        );
    }

    #[test]
    fn every_program_has_a_bill_and_the_same_each_time() {
        let metadata = metadata(&crate::root(), Platform::Amd64).unwrap();
        for program in PACKAGES.iter().filter_map(|package| package.program) {
            let text = bill(&metadata, program).unwrap().to_string();
            assert!(text.contains("pkg:cargo/tokio@"), "{program}: no tokio");
            assert!(
                !text.contains(env!("CARGO_MANIFEST_DIR")),
                "{program}: a path"
            );
            assert_eq!(text, bill(&metadata, program).unwrap().to_string());
        }
    }
}
