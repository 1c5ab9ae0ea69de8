//! Dependencies of a package on packages that this repository does not build.
//!
//! They come from the platform's mirror of third-party packages. Without such a mirror in the
//! registry, a package can be pushed without them.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use serde_yaml::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A manifest with only the dependencies that the registry can serve, and the list of those that
/// were left out.
#[derive(Debug)]
pub(crate) struct Served {
    /// The manifest; unchanged if nothing is missing.
    pub(crate) manifest: String,
    /// Repositories such as `upbound/provider-aws-ec2`.
    pub(crate) missing: Vec<String>,
}

/// Removes from `dependsOn` the packages that `registry` does not hold. Packages of `own`, this
/// repository's organisation, are not looked up, because they are pushed before.
pub(crate) fn served(
    manifest: &str,
    registry: &str,
    own: &str,
    holds: impl Fn(&str) -> bool,
) -> Outcome<Served> {
    let mut document: Value = serde_yaml::from_str(manifest)?;
    let dependencies = document
        .get_mut("spec")
        .and_then(|spec| spec.get_mut("dependsOn"))
        .and_then(Value::as_sequence_mut);
    let mut missing = Vec::new();
    if let Some(dependencies) = dependencies {
        dependencies.retain(|dependency| {
            let package = dependency.get("package").and_then(Value::as_str);
            let repository = package
                .and_then(|package| package.strip_prefix(registry))
                .map(|path| path.trim_start_matches('/'));
            match repository {
                Some(path) if !path.starts_with(&format!("{own}/")) && !holds(path) => {
                    missing.push(path.to_owned());
                    false
                }
                _ => true,
            }
        });
    }
    let manifest = if missing.is_empty() {
        manifest.to_owned()
    } else {
        serde_yaml::to_string(&document)?
    };
    Ok(Served { manifest, missing })
}

/// Whether the registry lists a tag of the repository. Most registries answer with an error for a
/// repository that they do not have, so an error means no.
pub(crate) fn holds(crane: &Path, registry: &str, repository: &str) -> bool {
    let listed = Command::new(crane)
        .args(["ls", &format!("{registry}/{repository}")])
        .output();
    listed.is_ok_and(|ran| ran.status.success() && !ran.stdout.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
# kept while nothing is missing
spec:
  dependsOn:
    - package: registry.test:5000/acme/function-a
      version: '>=v0.1.0-0'
    - package: registry.test:5000/upbound/provider-aws-ec2
      version: '>=v2.5.0'
";

    fn dependencies(manifest: &str) -> Vec<String> {
        let document: Value = serde_yaml::from_str(manifest).unwrap();
        let listed = document["spec"]["dependsOn"].as_sequence().unwrap();
        let names = listed.iter().map(|one| one["package"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    #[test]
    fn a_registry_without_the_mirror_still_gets_an_installable_configuration() {
        let served = served(MANIFEST, "registry.test:5000", "acme", |_| false).unwrap();
        assert_eq!(
            dependencies(&served.manifest),
            ["registry.test:5000/acme/function-a"]
        );
        assert_eq!(served.missing, ["upbound/provider-aws-ec2"]);
    }

    #[test]
    fn a_mirrored_package_stays_a_dependency() {
        let holds = |path: &str| path == "upbound/provider-aws-ec2";
        let served = served(MANIFEST, "registry.test:5000", "acme", holds).unwrap();
        assert_eq!(served.manifest, MANIFEST);
        assert!(served.missing.is_empty());
    }

    #[test]
    fn a_manifest_without_dependencies_passes_through() {
        let served = served("kind: Function\n", "r", "acme", |_| false).unwrap();
        assert_eq!(served.manifest, "kind: Function\n");
    }
}
