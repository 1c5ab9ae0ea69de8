//! Objects of the cluster that devctl reads and writes.

use std::fmt;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// `GpuDevWorkspaceClaim`, in both configurations.
    Claim,
    /// `WorkspaceFlavor`.
    Flavor,
    /// `ConfigMap`.
    ConfigMap,
    /// `Event`.
    Event,
    /// `PersistentVolumeClaim`: a home in the cluster.
    Home,
    /// `Pod`.
    Pod,
    /// `SpotPool`: the instances of a workspace on EC2.
    SpotPool,
}

impl Kind {
    /// The API group; empty for Kubernetes' first one.
    pub fn group(self) -> &'static str {
        match self {
            Self::Claim | Self::Flavor => api::WORKSPACE_GROUP,
            Self::SpotPool => api::POOL_GROUP,
            Self::ConfigMap | Self::Event | Self::Home | Self::Pod => "",
        }
    }

    /// The version in the group.
    pub fn version(self) -> &'static str {
        if self.group().is_empty() {
            "v1"
        } else {
            "v1alpha1"
        }
    }

    /// The group and the version in manifests.
    pub fn api_version(self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    /// The kind in manifests.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Claim => "GpuDevWorkspaceClaim",
            Self::Flavor => "WorkspaceFlavor",
            Self::ConfigMap => "ConfigMap",
            Self::Event => "Event",
            Self::Home => "PersistentVolumeClaim",
            Self::Pod => "Pod",
            Self::SpotPool => "SpotPool",
        }
    }

    /// The name in URLs and roles.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Claim => "gpudevworkspaceclaims",
            Self::Flavor => "workspaceflavors",
            Self::ConfigMap => "configmaps",
            Self::Event => "events",
            Self::Home => "persistentvolumeclaims",
            Self::Pod => "pods",
            Self::SpotPool => "spotpools",
        }
    }

    /// What people call it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Claim => "workspace",
            Self::Flavor => "flavor",
            Self::Home => "home",
            other => other.kind(),
        }
    }

    /// Whether its objects are in a namespace.
    pub fn is_namespaced(self) -> bool {
        self != Self::Flavor
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The kind.
    pub kind: Kind,
    /// The namespace. It has no meaning for kinds of the whole cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Reference {
    /// An object of a namespace.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        if kind.is_namespaced() {
            write!(f, "{} {namespace}/{name}", kind.noun())
        } else {
            write!(f, "{} {name}", kind.noun())
        }
    }
}

/// The text at a JSON pointer; none if it is absent, empty or no text.
pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    let text = object.pointer(pointer)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// The value of a known type at a JSON pointer; none if it is absent or has another shape.
pub fn typed<T: DeserializeOwned>(object: &Value, pointer: &str) -> Option<T> {
    T::deserialize(object.pointer(pointer)?).ok()
}

/// The time at a JSON pointer; none if it is absent or no time.
pub fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer)?.parse().ok()
}

/// The list at a JSON pointer; empty if it is absent.
pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The version of an object in the API server's store.
pub fn version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion").unwrap_or_default()
}

/// The label of the pods and homes of a workspace in the cluster.
const CLUSTER_WORKSPACE: &str = "/metadata/labels/platform.acme.io~1cluster-workspace";
/// What newer workspaces have in the label before the name of the claim.
const PREFIX: &str = "gpuws-";

/// The claim's name of a pod or a home of a workspace in the cluster.
pub fn cluster_workspace(object: &Value) -> Option<&str> {
    let label = text(object, CLUSTER_WORKSPACE)?;
    Some(label.strip_prefix(PREFIX).unwrap_or(label))
}

/// The value of an annotation.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(key)?.as_str()
}
