//! The packages of this repository, and their contents.

use std::ffi::OsStr;
use std::path::Path;

use clap::Args;

/// The organisation in package references. By Crossplane's rule it is also in the names of
/// installed packages.
pub(crate) const ORGANISATION: &str = "acme";

const WITH_CLAIMS: &str = "configuration-gpu-workspaces";
const NAMESPACED: &str = "configuration-gpu-workspaces-namespaced";
const PROVIDER_AWS: &str = "configuration-gpu-workspaces-provider-aws";

/// Which workspaces a cluster has. Both configurations define the same kind, so
/// there is one of the two.
#[derive(Args, Clone, Copy)]
pub(crate) struct Composites {
    /// Workspaces as namespaced composites, without claims
    #[arg(long)]
    pub(crate) namespaced: bool,
}

impl Composites {
    /// The configuration of these workspaces.
    pub(crate) fn configuration(self) -> &'static str {
        if self.namespaced {
            NAMESPACED
        } else {
            WITH_CLAIMS
        }
    }

    /// The other kind of workspaces, which this cluster does not have.
    pub(crate) fn other(self) -> Self {
        Self {
            namespaced: !self.namespaced,
        }
    }

    /// Whether a package is for a cluster with these workspaces.
    pub(crate) fn include(self, package: &Package) -> bool {
        package.name != self.other().configuration()
            && (package.name != PROVIDER_AWS || !self.namespaced)
    }

    /// The XRD of these workspaces.
    pub(crate) fn xrd(self) -> &'static str {
        if self.namespaced {
            "gpudevworkspaceclaims.platform.acme.io"
        } else {
            "gpudevworkspaces.platform.acme.io"
        }
    }
}

/// A Crossplane package.
pub(crate) struct Package {
    /// Its kind, as the crossplane CLI names it.
    pub(crate) kind: &'static str,
    /// The last part of its reference.
    pub(crate) name: &'static str,
    /// The folder below `package/` with its metadata and with the files that no other package has.
    /// All files of the folder go into the package.
    pub(crate) folder: &'static str,
    /// Folders below the repository's root whose manifests also go into the package. Only files
    /// directly in these folders do; subfolders belong to other packages.
    pub(crate) manifests: &'static [&'static str],
    /// Files of these folders that belong only to another package.
    pub(crate) without: &'static [&'static str],
    /// Folders or files below `examples/` that show its use.
    pub(crate) examples: &'static [&'static str],
    /// The program that it runs.
    pub(crate) program: Option<&'static str>,
}

impl Package {
    /// Whether the platform works without the package.
    pub(crate) fn is_addition(&self) -> bool {
        self.name == PROVIDER_AWS
    }

    /// Whether a manifest of its folders belongs only to another package.
    pub(crate) fn leaves_out(&self, file: &Path) -> bool {
        let name = file.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| self.without.contains(&name))
    }
}

/// The packages, in the order in which they are installed.
pub(crate) const PACKAGES: &[Package] = &[
    Package {
        kind: "provider",
        name: "provider-gpu-spot",
        folder: "provider",
        manifests: &[],
        without: &[],
        examples: &["platform/provider-config.yaml", "pools"],
        program: Some("provider-gpu-spot"),
    },
    Package {
        kind: "function",
        name: "function-gpu-workspace",
        folder: "function",
        manifests: &[],
        without: &[],
        examples: &["platform/catalogue.yaml", "platform/owner-binding.yaml"],
        program: Some("function-gpu-workspace"),
    },
    Package {
        kind: "configuration",
        name: WITH_CLAIMS,
        folder: "configuration",
        manifests: &["xrds", "compositions"],
        without: &[],
        examples: &["cluster", "on-demand", "platform", "users", "workspaces"],
        program: None,
    },
    Package {
        kind: "configuration",
        name: NAMESPACED,
        folder: "configuration-namespaced",
        manifests: &[
            "xrds",
            "xrds/namespaced",
            "compositions",
            "compositions/namespaced",
        ],
        without: &[
            "gpudevworkspaces.platform.acme.io.yaml",
            "gpudevworkspaces.yaml",
        ],
        examples: &[
            "cluster",
            "namespaced",
            "on-demand",
            "platform",
            "users",
            "workspaces",
        ],
        program: None,
    },
    Package {
        kind: "configuration",
        name: PROVIDER_AWS,
        folder: "configuration-provider-aws",
        manifests: &["compositions/provider-aws"],
        without: &[],
        examples: &["platform", "provider-aws"],
        program: None,
    },
];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use semver::Version;
    use serde_yaml::Value;

    use super::*;
    use crate::release::versions;

    fn manifest(package: &Package) -> Value {
        let path: PathBuf = ["package", package.folder, "crossplane.yaml"]
            .iter()
            .collect();
        let text = std::fs::read_to_string(crate::root().join(path)).unwrap();
        serde_yaml::from_str(&text).unwrap()
    }

    #[test]
    fn whoever_finds_a_package_reads_what_it_is_and_whose() {
        for package in PACKAGES {
            let manifest = manifest(package);
            assert_eq!(manifest["metadata"]["name"], package.name);
            assert_eq!(
                manifest["kind"].as_str().unwrap().to_lowercase(),
                package.kind
            );
            let annotations = &manifest["metadata"]["annotations"];
            let text = |key: &str| annotations[key].as_str().unwrap_or_default().to_owned();
            for key in ["maintainer", "source", "license", "description", "readme"] {
                let key = format!("meta.crossplane.io/{key}");
                assert!(!text(&key).is_empty(), "{}: {key}", package.name);
            }
            let name = text("friendly-name.meta.crossplane.io");
            assert!(!name.is_empty(), "{}: friendly-name", package.name);
            let (licence, source) = (env!("CARGO_PKG_LICENSE"), env!("CARGO_PKG_REPOSITORY"));
            assert_eq!(text("meta.crossplane.io/license"), licence);
            assert_eq!(text("meta.crossplane.io/source"), source);
            // The package specification asks for one sentence.
            assert_eq!(text("meta.crossplane.io/description").lines().count(), 1);
            assert_eq!(manifest["spec"]["crossplane"]["version"], ">=v2.0.0-0");
        }
    }

    #[test]
    fn packages_of_one_release_find_each_other_and_no_later_ones() {
        let version = Version::parse(env!("CARGO_PKG_VERSION")).unwrap();
        let own = format!("/{ORGANISATION}/");
        let mut counted = 0;
        for package in PACKAGES {
            let manifest = manifest(package);
            let dependencies = manifest["spec"]["dependsOn"].as_sequence().cloned();
            for dependency in dependencies.unwrap_or_default() {
                let path = dependency["package"].as_str().unwrap();
                let range = dependency["version"].as_str().unwrap();
                if let Some((_, name)) = path.split_once(&own) {
                    assert!(PACKAGES.iter().any(|one| one.name == name), "{name}");
                    assert_eq!(range, versions::range(&version), "{}: {name}", package.name);
                    counted += 1;
                }
                assert!(range.contains(", <v"), "{}: {path}: no end", package.name);
            }
        }
        assert!(counted > 0, "no configuration depends on anything");
    }
}
