//! The Service and the `NetworkPolicy` of a workspace's pods.

use api::policy::{BehaviourVersion, ClusterEgress};
use function_workspace::bastion;
use function_workspace::labels::OWNER_LABEL;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use crate::identity;
use crate::names::{Names, WORKSPACE_LABEL};

/// The metadata service of clouds, which gives the node's credentials to every pod that asks.
const METADATA_IPV4: &str = "169.254.169.254/32";
const METADATA_IPV6: &str = "fd00:ec2::254/128";
/// Networks that are not the internet: private ones (RFC 1918), the shared address space of carriers
/// (RFC 6598, with the metadata service of Alibaba Cloud), link-local addresses (RFC 3927, with the
/// metadata services of most clouds), addresses for protocols (RFC 6890, with the metadata service
/// of Oracle's cloud), and the metadata service of Azure.
const INTERNAL_IPV4: [&str; 7] = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
];
/// Unique local addresses (RFC 4193) and link-local ones (RFC 4291).
const INTERNAL_IPV6: [&str; 2] = ["fc00::/7", "fe80::/10"];
/// The label that Kubernetes sets on each Namespace, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// The namespace of the cluster's DNS.
const DNS_NAMESPACE: &str = "kube-system";
const DNS_PORT: i32 = 53;
/// The ports on which API servers listen.
const API_SERVER_PORTS: [i32; 2] = [443, 6443];
const SSH_PORT: i32 = 22;
const TCP: &str = "TCP";
const UDP: &str = "UDP";

/// What the pods of a workspace reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Egress {
    /// Everything except the metadata service, as before behaviour version v3.
    Open,
    /// DNS, the pods of the workspace, the internet, and the policy's networks.
    Closed(ClusterEgress),
}

impl Egress {
    /// What pods reach with this policy.
    pub fn of(version: BehaviourVersion, policy: &ClusterEgress) -> Self {
        if is_closed(version) {
            Self::Closed(policy.clone())
        } else {
            Self::Open
        }
    }

    fn rules(&self, workspace: &LabelSelector) -> Vec<NetworkPolicyEgressRule> {
        let closed = match self {
            Self::Open => return everything().into(),
            Self::Closed(closed) => closed,
        };
        let networks = |texts: &[String]| texts.iter().map(|cidr| network(cidr, &[])).collect();
        let further = (!closed.further.is_empty()).then(|| to(networks(&closed.further), &[]));
        let dns = [(UDP, DNS_PORT), (TCP, DNS_PORT)];
        let api_server = API_SERVER_PORTS.map(|port| (TCP, port));
        [
            to(vec![in_namespace(DNS_NAMESPACE)], &dns),
            to(vec![pods(workspace.clone())], &[]),
            to(
                vec![
                    network("0.0.0.0/0", &INTERNAL_IPV4),
                    network("::/0", &INTERNAL_IPV6),
                ],
                &[],
            ),
            to(networks(&closed.api_server), &api_server),
        ]
        .into_iter()
        .chain(further)
        .collect()
    }
}

/// Whether pods of this behaviour version reach no private networks.
pub fn is_closed(version: BehaviourVersion) -> bool {
    match version {
        BehaviourVersion::V1 | BehaviourVersion::V2 => false,
        BehaviourVersion::V3 => true,
    }
}

/// The headless Service. It has DNS names for pods that are not ready, because pods look for each
/// other while they start.
pub fn service(names: &Names, owner: &str) -> Service {
    let ssh = ServicePort {
        name: Some("ssh".to_owned()),
        port: SSH_PORT,
        protocol: Some(TCP.to_owned()),
        target_port: Some(IntOrString::Int(SSH_PORT)),
        ..ServicePort::default()
    };
    Service {
        metadata: identity::metadata(names, &names.name, owner),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(true),
            selector: Some([(WORKSPACE_LABEL.to_owned(), names.name.clone())].into()),
            ports: Some(vec![ssh]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// The rule for SSH: the networks of the workspace, and the pods of the bastion. None if nobody may
/// connect.
pub fn by_ssh(
    ssh_cidrs: &[String],
    bastion: Option<&bastion::Pods>,
) -> Option<NetworkPolicyIngressRule> {
    let networks = ssh_cidrs.iter().map(|cidr| network(cidr, &[]));
    let bastion = bastion.map(|bastion| NetworkPolicyPeer {
        pod_selector: Some(LabelSelector {
            match_labels: Some(bastion.labels.clone()),
            match_expressions: None,
        }),
        ..in_namespace(&bastion.namespace)
    });
    let peers: Vec<_> = networks.chain(bastion).collect();
    (!peers.is_empty()).then(|| NetworkPolicyIngressRule {
        from: Some(peers),
        ports: Some(vec![port_of(TCP, SSH_PORT)]),
    })
}

/// Closes all networks of a desired `NetworkPolicy`, and lets the bastion in. Other pods that it lets
/// in stay.
pub fn open_only(policy: &mut Value, bastion: Option<&bastion::Pods>) {
    let Some(spec) = policy.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let rules = spec.entry("ingress").or_insert_with(|| json!([]));
    let Some(rules) = rules.as_array_mut() else {
        return;
    };
    for peers in rules.iter_mut().filter_map(|rule| rule.get_mut("from")) {
        if let Some(peers) = peers.as_array_mut() {
            peers.retain(|peer| peer.get("ipBlock").is_none());
        }
    }
    // A rule without peers would let everybody in.
    rules.retain(|rule| {
        let peers = rule.get("from").and_then(Value::as_array);
        peers.is_some_and(|peers| !peers.is_empty())
    });
    let of_bastion = by_ssh(&[], bastion).and_then(|rule| serde_json::to_value(rule).ok());
    let of_bastion = of_bastion.filter(|rule| !rules.contains(rule));
    rules.extend(of_bastion);
    if rules.is_empty() {
        spec.remove("ingress");
    }
}

/// The `NetworkPolicy` of the pods. The pods of a workspace reach each other on every port, because
/// NCCL uses any free port. `by_ssh` is the rule for SSH. `gang` is the owner of the pods if there
/// are several pods.
pub fn policy(
    names: &Names,
    owner: &str,
    by_ssh: Option<NetworkPolicyIngressRule>,
    gang: Option<&str>,
    egress: &Egress,
) -> NetworkPolicy {
    let workspace = (WORKSPACE_LABEL.to_owned(), names.name.clone());
    let each_other = gang.map(|gang| NetworkPolicyIngressRule {
        from: Some(vec![NetworkPolicyPeer {
            pod_selector: Some(labelled([
                workspace.clone(),
                (OWNER_LABEL.to_owned(), gang.to_owned()),
            ])),
            ..NetworkPolicyPeer::default()
        }]),
        ports: None,
    });
    let ingress: Vec<_> = each_other.into_iter().chain(by_ssh).collect();
    let selector = labelled([workspace]);
    NetworkPolicy {
        metadata: identity::metadata(names, &names.network_policy(), owner),
        spec: Some(NetworkPolicySpec {
            egress: Some(egress.rules(&selector)),
            pod_selector: Some(selector),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            // The API server drops an empty list, so each apply of an empty list would count as a
            // change.
            ingress: Some(ingress).filter(|rules| !rules.is_empty()),
        }),
    }
}

fn labelled<const N: usize>(labels: [(String, String); N]) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels.into()),
        match_expressions: None,
    }
}

fn everything() -> [NetworkPolicyEgressRule; 2] {
    let networks = vec![
        network("0.0.0.0/0", &[METADATA_IPV4]),
        network("::/0", &[METADATA_IPV6]),
    ];
    // Some network plugins do not treat pods as part of an IP block.
    let namespaces = NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector::default()),
        ..NetworkPolicyPeer::default()
    };
    [to(networks, &[]), to(vec![namespaces], &[])]
}

fn network(cidr: &str, except: &[&str]) -> NetworkPolicyPeer {
    let except: Vec<String> = except.iter().map(|cidr| (*cidr).to_owned()).collect();
    NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr: cidr.to_owned(),
            except: Some(except).filter(|except| !except.is_empty()),
        }),
        ..NetworkPolicyPeer::default()
    }
}

fn pods(selector: LabelSelector) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        pod_selector: Some(selector),
        ..NetworkPolicyPeer::default()
    }
}

fn in_namespace(name: &str) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        namespace_selector: Some(labelled([(NAMESPACE_NAME.to_owned(), name.to_owned())])),
        ..NetworkPolicyPeer::default()
    }
}

/// A rule for these peers; without ports, on every port.
fn to(peers: Vec<NetworkPolicyPeer>, ports: &[(&str, i32)]) -> NetworkPolicyEgressRule {
    let ports: Vec<_> = ports
        .iter()
        .map(|(protocol, port)| port_of(protocol, *port))
        .collect();
    NetworkPolicyEgressRule {
        to: Some(peers),
        ports: Some(ports).filter(|ports| !ports.is_empty()),
    }
}

fn port_of(protocol: &str, port: i32) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(port)),
        protocol: Some(protocol.to_owned()),
        end_port: None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use ipnet::Ipv4Net;

    use super::*;

    /// Whether a rule for every port lets pods reach an address.
    fn reaches(egress: &Egress, address: &str) -> bool {
        let address: Ipv4Addr = address.parse().unwrap();
        let contains = |cidr: &str| {
            let network: Result<Ipv4Net, _> = cidr.parse();
            network.is_ok_and(|network| network.contains(&address))
        };
        let rules = egress.rules(&LabelSelector::default());
        let open = rules.iter().filter(|rule| rule.ports.is_none());
        let peers = open.flat_map(|rule| rule.to.iter().flatten());
        peers
            .filter_map(|peer| peer.ip_block.as_ref())
            .any(|block| {
                let except = block.except.iter().flatten();
                contains(&block.cidr) && !except.into_iter().any(|cidr| contains(cidr))
            })
    }

    #[test]
    fn pods_reach_no_private_address_and_no_metadata_service_of_any_cloud() {
        let closed = Egress::of(BehaviourVersion::V3, &ClusterEgress::default());
        for address in [
            "10.96.0.1",
            "172.31.255.254",
            "192.168.1.1",
            "100.64.0.1",
            // Metadata services: most clouds, ECS and EKS, Azure, Alibaba, Oracle.
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
        ] {
            assert!(!reaches(&closed, address), "{address}");
        }
        assert!(reaches(&closed, "151.101.0.223"), "the internet");
        assert!(reaches(&closed, "172.32.0.1"), "beside a private network");
        let further = ClusterEgress {
            further: vec!["10.9.0.0/16".to_owned()],
            ..ClusterEgress::default()
        };
        let further = Egress::of(BehaviourVersion::V3, &further);
        assert!(reaches(&further, "10.9.1.1"), "a network of the policy");
        assert!(!reaches(&further, "10.8.1.1"));
    }

    #[test]
    fn running_pods_of_an_earlier_version_reach_what_they_reached() {
        let open = Egress::of(BehaviourVersion::V2, &ClusterEgress::default());
        assert!(reaches(&open, "10.96.0.1"));
        assert!(!reaches(&open, "169.254.169.254"));
    }
}
