//! The nodes' names, and who may reach them.

use function_workspace::labels::OWNER_LABEL;
use serde_json::{Value, json};

use crate::names::{Names, WORKSPACE_LABEL};

/// Where clouds answer any pod with the machine's own credentials.
const METADATA_IPV4: &str = "169.254.169.254/32";
const METADATA_IPV6: &str = "fd00:ec2::254/128";

/// The headless Service. It names nodes before they are ready, since they look for
/// each other while they start.
pub fn service(names: &Names, owner: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": crate::identity::metadata(names, &names.name, owner),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": {(WORKSPACE_LABEL): names.name},
            "ports": [{"name": "ssh", "port": 22, "protocol": "TCP", "targetPort": 22}],
        },
    })
}

/// Who may reach the nodes: they each other on every port, since NCCL takes
/// whichever is free, and the claim's networks by SSH. The nodes reach everything
/// but the machine's metadata. `gang` is whose the nodes are, where there are several.
pub fn policy(names: &Names, owner: &str, ssh_cidrs: &[String], gang: Option<&str>) -> Value {
    let mut ingress = Vec::new();
    if let Some(gang) = gang {
        let peers = json!({"podSelector": {"matchLabels": {
            (WORKSPACE_LABEL): names.name,
            (OWNER_LABEL): gang,
        }}});
        ingress.push(json!({"from": [peers]}));
    }
    if !ssh_cidrs.is_empty() {
        let networks: Vec<Value> = ssh_cidrs
            .iter()
            .map(|cidr| json!({"ipBlock": {"cidr": cidr}}))
            .collect();
        ingress.push(json!({"from": networks, "ports": [{"port": 22, "protocol": "TCP"}]}));
    }
    let mut policy = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": crate::identity::metadata(names, &names.name, owner),
        "spec": {
            "podSelector": {"matchLabels": {(WORKSPACE_LABEL): names.name}},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [
                {"to": [
                    {"ipBlock": {"cidr": "0.0.0.0/0", "except": [METADATA_IPV4]}},
                    {"ipBlock": {"cidr": "::/0", "except": [METADATA_IPV6]}},
                ]},
                // Some network plugins take no pod for part of a network.
                {"to": [{"namespaceSelector": {}}]},
            ],
        },
    });
    // The API server drops an empty list, and would take each apply for a change.
    if !ingress.is_empty() {
        policy["spec"]["ingress"] = json!(ingress);
    }
    policy
}
