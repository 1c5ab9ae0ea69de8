//! The programs that are built from source, and the flags that Go gets.
//!
//! Each version is written in one place, in `binaries/<folder>/go.mod`. This table says which
//! packages of a module become which binaries.

use crate::narrowed::Narrowed;
use crate::provider_aws;

/// One Go module of `binaries/`. Its versions fit each other, and one call of Go compiles and links
/// its programs.
#[derive(Debug)]
pub struct Module {
    /// The folder below `binaries/`. Two entries share a folder if their programs hold different
    /// versions in the same variable.
    pub folder: &'static str,
    /// The programs that are built from the module.
    pub binaries: &'static [Binary],
    /// Variables that the linker sets to versions.
    pub stamps: &'static [Stamp],
    /// Build tags.
    pub tags: &'static str,
    /// Source modules that are compiled without some of their parts.
    pub narrowed: &'static [Narrowed],
    /// Whether every cluster needs it. Other modules are built only on request.
    pub in_every_cluster: bool,
    /// The duration of a first build on two cores, in seconds, as `make demo` builds it: Kubernetes'
    /// programs while Cargo compiles, the others alone.
    pub typical: u64,
}

/// One program.
#[derive(Debug)]
pub struct Binary {
    /// The file's name.
    pub name: &'static str,
    /// The package that Go builds. The packages of our own programs begin with a dot.
    pub package: &'static str,
    /// The module whose version the program has; empty for most of our own programs.
    pub source: &'static str,
}

/// A variable of a program that holds a version.
#[derive(Debug)]
pub struct Stamp {
    /// The variable, with its package.
    pub variable: &'static str,
    /// The module whose version it holds.
    pub source: &'static str,
    /// The part of the version that the variable gets.
    pub part: Part,
}

/// A part of a version such as `v1.37.0`.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// `v1.37.0`
    Whole,
    /// `1.37.0`
    Number,
    /// `1`
    Major,
    /// `37`
    Minor,
}

impl Part {
    /// This part of a version.
    pub fn of(self, version: &str) -> &str {
        let number = version.trim_start_matches('v');
        let mut numbers = number.split('.');
        match self {
            Self::Whole => version,
            Self::Number => number,
            Self::Major => numbers.next().unwrap_or_default(),
            Self::Minor => numbers.nth(1).unwrap_or_default(),
        }
    }
}

const fn binary(name: &'static str, package: &'static str, source: &'static str) -> Binary {
    Binary {
        name,
        package,
        source,
    }
}

const fn stamp(variable: &'static str, source: &'static str, part: Part) -> Stamp {
    Stamp {
        variable,
        source,
        part,
    }
}

const CLI: &str = "github.com/crossplane/cli/v2";
const CONTAINERD: &str = "github.com/containerd/containerd/v2";
const CRANE: &str = "github.com/google/go-containerregistry";
const CROSSPLANE: &str = "github.com/crossplane/crossplane/v2";
/// Crossplane and its command line both hold their version in this variable.
const CROSSPLANE_VERSION: &str = "github.com/crossplane/crossplane-runtime/v2/pkg/version.version";
const ETCD: &str = "go.etcd.io/etcd/server/v3";
const HELM: &str = "helm.sh/helm/v4";
const KUBERNETES: &str = "k8s.io/kubernetes";

/// Every module that can be built.
pub static MODULES: &[Module] = &[
    Module {
        folder: "kubernetes",
        binaries: &[
            binary("coredns", "./coredns", "github.com/coredns/coredns"),
            binary("etcd", ETCD, ETCD),
            binary(
                "kube-apiserver",
                "k8s.io/kubernetes/cmd/kube-apiserver",
                KUBERNETES,
            ),
            binary(
                "kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
                KUBERNETES,
            ),
            binary("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", KUBERNETES),
            binary(
                "kube-scheduler",
                "k8s.io/kubernetes/cmd/kube-scheduler",
                KUBERNETES,
            ),
            binary("kubectl", "k8s.io/kubernetes/cmd/kubectl", KUBERNETES),
            binary("kubelet", "k8s.io/kubernetes/cmd/kubelet", KUBERNETES),
            binary("network-policies", "./network-policies", ""),
            binary("pause", "./pause", ""),
            binary("volumes", "./volumes", ""),
        ],
        stamps: &[
            // Without these, clients see version v0.0.0 and refuse features that need a newer
            // version.
            stamp(
                "k8s.io/component-base/version.gitVersion",
                KUBERNETES,
                Part::Whole,
            ),
            stamp(
                "k8s.io/component-base/version.gitMajor",
                KUBERNETES,
                Part::Major,
            ),
            stamp(
                "k8s.io/component-base/version.gitMinor",
                KUBERNETES,
                Part::Minor,
            ),
        ],
        tags: "",
        narrowed: &[],
        in_every_cluster: true,
        typical: 660,
    },
    Module {
        folder: "crossplane",
        binaries: &[
            binary(
                "crane",
                "github.com/google/go-containerregistry/cmd/crane",
                CRANE,
            ),
            // This is Crossplane's command line. Crossplane itself is `crossplane-core`.
            binary(
                "crossplane",
                "github.com/crossplane/cli/v2/cmd/crossplane",
                CLI,
            ),
            binary("helm", "helm.sh/helm/v4/cmd/helm", HELM),
        ],
        stamps: &[
            stamp(CROSSPLANE_VERSION, CLI, Part::Whole),
            stamp(
                "helm.sh/helm/v4/internal/version.version",
                HELM,
                Part::Whole,
            ),
        ],
        tags: "",
        narrowed: &[],
        in_every_cluster: true,
        typical: 150,
    },
    Module {
        folder: "crossplane",
        binaries: &[binary(
            "crossplane-core",
            "github.com/crossplane/crossplane/v2/cmd/crossplane",
            CROSSPLANE,
        )],
        stamps: &[stamp(CROSSPLANE_VERSION, CROSSPLANE, Part::Whole)],
        tags: "",
        narrowed: &[],
        in_every_cluster: true,
        typical: 15,
    },
    Module {
        folder: "crossplane",
        // Crossplane's check of signatures alone, without a cluster.
        binaries: &[binary("signatures", "./signatures", "")],
        stamps: &[],
        tags: "",
        narrowed: &[],
        in_every_cluster: false,
        typical: 40,
    },
    Module {
        folder: "containerd",
        binaries: &[
            binary(
                "containerd",
                "github.com/containerd/containerd/v2/cmd/containerd",
                CONTAINERD,
            ),
            binary(
                "containerd-shim-runc-v2",
                "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
                CONTAINERD,
            ),
            binary(
                "ctr",
                "github.com/containerd/containerd/v2/cmd/ctr",
                CONTAINERD,
            ),
        ],
        stamps: &[stamp(
            "github.com/containerd/containerd/v2/version.Version",
            CONTAINERD,
            Part::Whole,
        )],
        tags: "no_btrfs no_devmapper no_zfs no_aufs",
        narrowed: &[],
        in_every_cluster: true,
        typical: 50,
    },
    Module {
        folder: "probe",
        binaries: &[binary("probe", ".", "")],
        stamps: &[],
        tags: "",
        narrowed: &[],
        in_every_cluster: false,
        typical: 5,
    },
    Module {
        folder: "kueue",
        binaries: &[binary(
            "kueue",
            "sigs.k8s.io/kueue/cmd/kueue",
            "sigs.k8s.io/kueue",
        )],
        stamps: &[stamp(
            "sigs.k8s.io/kueue/pkg/version.GitVersion",
            "sigs.k8s.io/kueue",
            Part::Whole,
        )],
        tags: "",
        narrowed: &[],
        in_every_cluster: false,
        typical: 240,
    },
    Module {
        folder: "argocd",
        // Argo CD's other programs are this program under other names.
        binaries: &[
            binary(
                "argocd",
                "github.com/argoproj/argo-cd/v3/cmd",
                "github.com/argoproj/argo-cd/v3",
            ),
            binary("argocd-health", "./health", ""),
        ],
        stamps: &[stamp(
            "github.com/argoproj/argo-cd/v3/common.version",
            "github.com/argoproj/argo-cd/v3",
            Part::Number,
        )],
        tags: "",
        narrowed: &[],
        in_every_cluster: false,
        typical: 400,
    },
    Module {
        folder: "dex",
        // A provider of identities (OpenID Connect), for the portal.
        binaries: &[binary(
            "dex",
            "github.com/dexidp/dex/cmd/dex",
            "github.com/dexidp/dex",
        )],
        stamps: &[],
        tags: "",
        narrowed: &[],
        in_every_cluster: false,
        typical: 120,
    },
    Module {
        folder: "provider-aws-ec2",
        binaries: &[binary(
            "provider-aws-ec2",
            "github.com/upbound/provider-aws/v2/cmd/provider/ec2",
            "github.com/upbound/provider-aws/v2",
        )],
        stamps: &[stamp(
            "github.com/upbound/provider-aws/v2/internal/version.Version",
            "github.com/upbound/provider-aws/v2",
            Part::Whole,
        )],
        tags: "",
        narrowed: provider_aws::EC2_ALONE,
        in_every_cluster: false,
        typical: 350,
    },
];

/// Compiler flags by package pattern. Go applies the last pattern that matches a package.
///
/// `-dwarf=false`: the linker would drop debug information anyway. `-l` switches inlining off;
/// large packages whose code seldom runs then compile in two thirds of the time. The standard
/// library, apimachinery and apiserver keep inlining, because API servers run their code all the
/// time.
pub const GCFLAGS: &[&str] = &[
    "all=-dwarf=false",
    "github.com/...=-dwarf=false -l",
    "k8s.io/...=-dwarf=false -l",
    "k8s.io/apimachinery/...=-dwarf=false",
    "k8s.io/apiserver/...=-dwarf=false",
];

/// The binary with this name, and its module.
pub fn find(name: &str) -> Option<(&'static Module, &'static Binary)> {
    MODULES.iter().find_map(|module| {
        let binary = module.binaries.iter().find(|binary| binary.name == name)?;
        Some((module, binary))
    })
}

/// The names of the binaries that every cluster needs.
pub fn cluster_binaries() -> Vec<&'static str> {
    MODULES
        .iter()
        .filter(|module| module.in_every_cluster)
        .flat_map(|module| module.binaries.iter().map(|binary| binary.name))
        .collect()
}
