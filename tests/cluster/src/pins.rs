//! What is built from source, and with which flags.
//!
//! A version is written once, in `binaries/<folder>/go.mod`; this table says
//! which packages of it become which binaries.

use std::path::{Path, PathBuf};

use crate::cache::{self, key};

/// One Go module of `binaries/`: versions that agree with each other.
#[derive(Debug)]
pub struct Module {
    /// The folder under `binaries/`.
    pub folder: &'static str,
    /// The module whose version counts; empty for our own programs.
    pub source: &'static str,
    /// What is built from it.
    pub binaries: &'static [Binary],
    /// Linker flags; `{version}`, `{major}` and `{minor}` are those of `source`, and
    /// `{number}` is the version without its `v`.
    pub ldflags: &'static str,
    /// Build tags.
    pub tags: &'static str,
    /// Whether a cluster needs it; others are built when somebody asks for them.
    pub in_every_cluster: bool,
}

/// One program.
#[derive(Debug)]
pub struct Binary {
    /// The file's name.
    pub name: &'static str,
    /// The package that is built.
    pub package: &'static str,
}

const fn binary(name: &'static str, package: &'static str) -> Binary {
    Binary { name, package }
}

/// Every module that can be built.
pub static MODULES: &[Module] = &[
    Module {
        folder: "pause",
        source: "",
        binaries: &[binary("pause", ".")],
        ldflags: "",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "probe",
        source: "",
        binaries: &[binary("probe", ".")],
        ldflags: "",
        tags: "",
        in_every_cluster: false,
    },
    Module {
        folder: "crane",
        source: "github.com/google/go-containerregistry",
        binaries: &[binary(
            "crane",
            "github.com/google/go-containerregistry/cmd/crane",
        )],
        ldflags: "",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "etcd",
        source: "go.etcd.io/etcd/server/v3",
        binaries: &[binary("etcd", "go.etcd.io/etcd/server/v3")],
        ldflags: "",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "containerd",
        source: "github.com/containerd/containerd/v2",
        binaries: &[
            binary(
                "containerd",
                "github.com/containerd/containerd/v2/cmd/containerd",
            ),
            binary(
                "containerd-shim-runc-v2",
                "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            ),
            binary("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
        ],
        ldflags: "-X github.com/containerd/containerd/v2/version.Version={version}",
        tags: "no_btrfs no_devmapper no_zfs no_aufs",
        in_every_cluster: true,
    },
    Module {
        folder: "kubernetes",
        source: "k8s.io/kubernetes",
        binaries: &[
            binary("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            binary(
                "kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            binary("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
            binary("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
            binary("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
            binary("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
        ],
        // Without these, clients see v0.0.0 and refuse features by version.
        ldflags: "-X k8s.io/component-base/version.gitVersion={version} \
                  -X k8s.io/component-base/version.gitMajor={major} \
                  -X k8s.io/component-base/version.gitMinor={minor}",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "coredns",
        source: "github.com/coredns/coredns",
        binaries: &[binary("coredns", "github.com/coredns/coredns")],
        ldflags: "",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "volumes",
        source: "",
        binaries: &[binary("volumes", ".")],
        ldflags: "",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "network-policies",
        source: "",
        binaries: &[binary("network-policies", ".")],
        ldflags: "",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "helm",
        source: "helm.sh/helm/v4",
        binaries: &[binary("helm", "helm.sh/helm/v4/cmd/helm")],
        ldflags: "-X helm.sh/helm/v4/internal/version.version={version}",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "crossplane",
        source: "github.com/crossplane/crossplane/v2",
        // The command line of the next module has the shorter name.
        binaries: &[binary(
            "crossplane-core",
            "github.com/crossplane/crossplane/v2/cmd/crossplane",
        )],
        ldflags: "-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version={version}",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "crossplane-cli",
        source: "github.com/crossplane/cli/v2",
        binaries: &[binary(
            "crossplane",
            "github.com/crossplane/cli/v2/cmd/crossplane",
        )],
        ldflags: "-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version={version}",
        tags: "",
        in_every_cluster: true,
    },
    Module {
        folder: "kueue",
        source: "sigs.k8s.io/kueue",
        binaries: &[binary("kueue", "sigs.k8s.io/kueue/cmd/kueue")],
        ldflags: "-X sigs.k8s.io/kueue/pkg/version.GitVersion={version}",
        tags: "",
        in_every_cluster: false,
    },
    Module {
        folder: "argocd",
        source: "github.com/argoproj/argo-cd/v3",
        // Its other programs are this one under other names.
        binaries: &[binary("argocd", "github.com/argoproj/argo-cd/v3/cmd")],
        ldflags: "-X github.com/argoproj/argo-cd/v3/common.version={number}",
        tags: "",
        in_every_cluster: false,
    },
    Module {
        folder: "provider-aws-ec2",
        source: "github.com/upbound/provider-aws/v2",
        binaries: &[binary(
            "provider-aws-ec2",
            "github.com/upbound/provider-aws/v2/cmd/provider/ec2",
        )],
        ldflags: "-X github.com/upbound/provider-aws/v2/internal/version.Version={version}",
        tags: "",
        // Half an hour and 10 GB of Go's caches.
        in_every_cluster: false,
    },
];

/// The module and binary of that name.
pub fn find(name: &str) -> Option<(&'static Module, &'static Binary)> {
    MODULES.iter().find_map(|module| {
        let binary = module.binaries.iter().find(|binary| binary.name == name)?;
        Some((module, binary))
    })
}

/// The names of what every cluster needs.
pub fn cluster_binaries() -> Vec<&'static str> {
    MODULES
        .iter()
        .filter(|module| module.in_every_cluster)
        .flat_map(|module| module.binaries.iter().map(|binary| binary.name))
        .collect()
}

/// What a module's folder says: its pins and, for our own programs, its source.
#[derive(Debug)]
pub struct Pins {
    /// The folder.
    pub folder: PathBuf,
    /// File names with contents, sorted.
    files: Vec<(String, String)>,
}

impl Pins {
    /// Reads `go.mod`, `go.sum` and the Go files of the module's folder.
    pub fn read(module: &Module) -> Result<Self, cache::Error> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("binaries")
            .join(module.folder);
        let listing = std::fs::read_dir(&folder).map_err(cache::Error::io("list", &folder))?;
        let mut files = Vec::new();
        for entry in listing {
            let entry = entry.map_err(cache::Error::io("list", &folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let extension = Path::new(&name).extension().and_then(|text| text.to_str());
            if matches!(extension, Some("mod" | "sum" | "go")) {
                files.push((name, cache::read(&entry.path())?));
            }
        }
        files.sort();
        Ok(Self { folder, files })
    }

    /// The version of `module` that `go.mod` requires.
    pub fn version(&self, module: &str) -> Option<&str> {
        self.go_mod_lines().find_map(|line| {
            let mut words = line
                .trim()
                .trim_start_matches("require ")
                .split_whitespace();
            (words.next() == Some(module)).then(|| words.next())?
        })
    }

    /// The oldest Go that `go.mod` accepts, such as `1.26.0`.
    pub fn go_version(&self) -> Option<&str> {
        self.go_mod_lines()
            .find_map(|line| line.strip_prefix("go "))
    }

    fn go_mod_lines(&self) -> impl Iterator<Item = &str> {
        self.files
            .iter()
            .filter(|(name, _)| name == "go.mod")
            .flat_map(|(_, text)| text.lines())
    }

    /// The linker flags with the version filled in; symbols are always stripped.
    pub fn ldflags(&self, module: &Module) -> String {
        let version = self.version(module.source).unwrap_or_default();
        let mut numbers = version.trim_start_matches('v').split('.');
        let flags = module
            .ldflags
            .replace("{version}", version)
            .replace("{number}", version.trim_start_matches('v'))
            .replace("{major}", numbers.next().unwrap_or_default())
            .replace("{minor}", numbers.next().unwrap_or_default());
        format!("-s -w {flags}").trim_end().to_owned()
    }

    /// Stands for everything that decides the binary's bytes.
    pub fn key(&self, module: &Module, binary: &Binary, go: &str) -> String {
        let ldflags = self.ldflags(module);
        let settings = [
            ("go", go),
            ("os", std::env::consts::OS),
            ("architecture", std::env::consts::ARCH),
            ("package", binary.package),
            ("ldflags", &ldflags),
            ("tags", module.tags),
        ];
        let files = self
            .files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        key(settings
            .into_iter()
            .chain(files)
            .map(|(name, text)| (name, text.as_bytes())))
    }
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
