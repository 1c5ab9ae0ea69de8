//! Workspaces in the cluster, as the policy of workspaces allows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lifecycle::PodAgentPolicy;
use crate::patterns::{DNS_NAME, IPV4_NETWORK};

/// Workspaces in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterPolicy {
    /// Name of the WorkspaceFlavor for claims that name none.
    #[schemars(length(min = 1, max = 63))]
    pub default_flavor: String,
    /// Names of the flavors that claims may use. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_flavors: Option<Vec<String>>,
    /// Largest number of pods of a workspace.
    #[serde(default = "default_max_nodes")]
    #[schemars(range(min = 1, max = 64))]
    pub max_nodes: i32,
    /// Whether the images of flavors and of the agent must be named by digest (`…@sha256:…`). A tag
    /// may name another image tomorrow.
    #[serde(default)]
    pub require_image_digest: bool,
    /// Kueue queues. Default: Kueue is not used, and pods start as soon as nodes have room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePolicy>,
    /// Whether the SSH keys of the `DevUser` with the owner's name may log in too. From behaviour
    /// version v3 on, they count on EC2 as well, for machines that start after a key was added.
    #[serde(default)]
    pub dev_users: bool,
    /// Agent beside the owner's container that reports whether the workspace is used. Default: no
    /// agent, so it is not known whether workspaces are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PodAgentPolicy>,
    /// DNS domain of the cluster. The host names of pods end with it.
    #[serde(default = "default_cluster_domain")]
    #[schemars(length(max = 253), regex(pattern = DNS_NAME))]
    pub domain: String,
    /// What the pods reach, from behaviour version v3 on. They always reach DNS, the pods of their own
    /// workspace, and the internet. They reach no private network and no cloud's metadata service.
    #[serde(default)]
    pub egress: ClusterEgress,
}

/// Networks that pods reach beside the internet.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterEgress {
    /// IPv4 networks of the API server. Pods reach ports 443 and 6443 there. They fetch their host
    /// keys from the API server, so without its network no pod becomes ready. `kubectl get
    /// endpointslices kubernetes` shows its addresses. Default: every private network, because the
    /// address differs between clusters.
    #[serde(default = "private_networks")]
    #[schemars(length(min = 1, max = 32), inner(regex(pattern = IPV4_NETWORK)))]
    pub api_server: Vec<String>,
    /// Further IPv4 networks, for example of a package mirror, of a data store, or of a node-local DNS
    /// cache. Pods reach every port there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(regex(pattern = IPV4_NETWORK)))]
    pub further: Vec<String>,
}

impl Default for ClusterEgress {
    fn default() -> Self {
        Self {
            api_server: private_networks(),
            further: Vec::new(),
        }
    }
}

/// The private networks of RFC 1918.
fn private_networks() -> Vec<String> {
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
        .map(str::to_owned)
        .into()
}

/// Kueue queues.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueuePolicy {
    /// Name of the LocalQueue for claims that name none.
    #[schemars(length(min = 1, max = 63))]
    pub default: String,
    /// Names of the LocalQueues that claims may use. Default: all in the claim's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Name of the WorkloadPriorityClass for claims that name none. Default: no class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_priority_class: Option<String>,
    /// Priority classes that claims may name. Default: the default class only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_priority_classes: Option<Vec<String>>,
}

fn default_max_nodes() -> i32 {
    8
}

fn default_cluster_domain() -> String {
    "cluster.local".into()
}
