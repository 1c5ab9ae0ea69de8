//! The Service and the `NetworkPolicy` of a workspace's pods.

use function_workspace::labels::OWNER_LABEL;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::identity;
use crate::names::{Names, WORKSPACE_LABEL};

/// The metadata service of clouds, which gives the node's credentials to every pod that asks.
const METADATA_IPV4: &str = "169.254.169.254/32";
const METADATA_IPV6: &str = "fd00:ec2::254/128";
const SSH_PORT: i32 = 22;
const TCP: &str = "TCP";

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

/// The `NetworkPolicy` of the pods. The pods of a workspace reach each other on every port, because
/// NCCL uses any free port. The claim's networks reach the pods by SSH. The pods reach everything
/// except the metadata service. `gang` is the owner of the pods if there are several pods.
pub fn policy(
    names: &Names,
    owner: &str,
    ssh_cidrs: &[String],
    gang: Option<&str>,
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
    let by_ssh = (!ssh_cidrs.is_empty()).then(|| NetworkPolicyIngressRule {
        from: Some(ssh_cidrs.iter().map(|cidr| network(cidr, None)).collect()),
        ports: Some(vec![NetworkPolicyPort {
            port: Some(IntOrString::Int(SSH_PORT)),
            protocol: Some(TCP.to_owned()),
            end_port: None,
        }]),
    });
    let ingress: Vec<_> = each_other.into_iter().chain(by_ssh).collect();
    let everything = vec![
        network("0.0.0.0/0", Some(METADATA_IPV4)),
        network("::/0", Some(METADATA_IPV6)),
    ];
    // Some network plugins do not treat pods as part of an IP block.
    let pods = vec![NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector::default()),
        ..NetworkPolicyPeer::default()
    }];
    NetworkPolicy {
        metadata: identity::metadata(names, &names.network_policy(), owner),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(labelled([workspace])),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            egress: Some([everything, pods].map(to).into()),
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

fn network(cidr: &str, except: Option<&str>) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr: cidr.to_owned(),
            except: except.map(|network| vec![network.to_owned()]),
        }),
        ..NetworkPolicyPeer::default()
    }
}

fn to(peers: Vec<NetworkPolicyPeer>) -> NetworkPolicyEgressRule {
    NetworkPolicyEgressRule {
        to: Some(peers),
        ports: None,
    }
}
