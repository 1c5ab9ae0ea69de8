//! The bastion, as the policy of workspaces lets it in.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::patterns::{DNS_LABEL, IPV4_NETWORK, SECURITY_GROUP};

/// The bastion: a server behind which the workspaces are. It may connect to port 22 of each of them.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BastionPolicy {
    /// Namespace of the bastion's pods, which may connect to workspaces in the cluster. It is
    /// required beside `podLabels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub namespace: Option<String>,
    /// Labels of the bastion's pods. Other pods in the namespace may not connect. They are required
    /// beside `namespace`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub pod_labels: BTreeMap<String, String>,
    /// IPv4 networks from which the bastion connects to workspaces on EC2. They do not count towards
    /// `sshCidrCeiling` and `sshMaxAddresses` of the policy. They must lie within the platform's
    /// limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 18), regex(pattern = IPV4_NETWORK)))]
    pub cidrs: Vec<String>,
    /// Security group of the bastion. Its members may connect to workspaces on EC2 by their private
    /// addresses. The group is in the VPC of the workspaces, or in a VPC of the same account and
    /// region that is peered with it. It needs exactly one entry in `allowedRegions`: that of the
    /// group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = SECURITY_GROUP))]
    pub security_group_id: Option<String>,
    /// Whether only the bastion may connect. If it is `true`, claims must not name networks, and
    /// `defaults.sshCidrs` has no effect. A running workspace stays, and its networks are closed.
    #[serde(default)]
    pub only: bool,
}
