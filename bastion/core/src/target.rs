//! Where a workspace is: the address of its pod, or of its instance.
//!
//! The address never comes from a status that users may be able to write. It comes from a pod of the
//! person's own namespace, which a `StatefulSet` controls, or from the pool that Crossplane composed
//! there, whose status the provider writes. The port is that of SSH.

use std::net::{IpAddr, SocketAddr};

use devctl_core::name::Host;
use devctl_core::object::{Kind, cluster_workspace, list, text};
use devctl_core::problem::{Code, Problem};
use devctl_core::ssh::PORT;
use devctl_core::workspace::Workspace;
use serde_json::Value;

/// An end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name of the pod, or the id of the instance.
    pub node: String,
    /// The address.
    pub address: SocketAddr,
}

/// Which address of an instance the bastion reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstanceAddress {
    /// The address in the VPC, which the bastion shares.
    #[default]
    Private,
    /// The public address.
    Public,
}

/// Finds the pod of a workspace among the pods of its namespace.
pub fn pod(workspace: Workspace<'_>, host: &Host, pods: &[Value]) -> Result<Target, Problem> {
    let object = workspace.reference().to_string();
    let name = workspace.name();
    let number = host.replica.unwrap_or(0);
    let count = workspace.replicas();
    if number >= count {
        let message = format!("it has {count} pods, from 0");
        return Err(Problem::usage("NAME", message).of(object));
    }
    let mut ours = pods
        .iter()
        .filter(|pod| cluster_workspace(pod) == Some(name));
    let pod = ours.find(|pod| is_number(pod, number));
    let pod = pod.ok_or_else(|| workspace.not_running(workspace.state()))?;
    let node = text(pod, "/metadata/name").unwrap_or_default();
    match address(pod) {
        Ok(address) => Ok(Target {
            node: node.to_owned(),
            address: SocketAddr::new(address, PORT),
        }),
        Err(why) => Err(Problem::new(
            Code::NotRunning,
            "PodNotRunning",
            format!("pod {node}: {why}"),
        )
        .of(object)
        .next(format!("devctl why {name}"))),
    }
}

/// Finds the instance of a workspace among the pools of its namespace. While a machine is replaced, it is
/// the one that the claim shows.
pub fn instance(
    workspace: Workspace<'_>,
    host: &Host,
    pools: &[Value],
    which: InstanceAddress,
) -> Result<Target, Problem> {
    if host.replica.unwrap_or(0) != 0 {
        let object = workspace.reference().to_string();
        return Err(Problem::usage("NAME", "an EC2 workspace has one machine").of(object));
    }
    let field = match which {
        InstanceAddress::Private => "/privateIp",
        InstanceAddress::Public => "/publicIp",
    };
    let ours = pools
        .iter()
        .filter(|pool| is_pool_of(pool, workspace.name()));
    let instances = ours.flat_map(|pool| list(pool, "/status/atProvider/instances"));
    let running = instances.filter(|one| text(one, "/state") == Some("running"));
    let mut found: Vec<Target> = running.filter_map(|one| reached(one, field)).collect();
    // The claim's status only chooses among the instances of its pool.
    let shown = workspace.status("instanceId");
    let chosen = found
        .iter()
        .position(|one| Some(one.node.as_str()) == shown);
    match chosen {
        Some(chosen) => Ok(found.swap_remove(chosen)),
        None => found
            .pop()
            .ok_or_else(|| workspace.not_running(workspace.state())),
    }
}

fn reached(instance: &Value, field: &str) -> Option<Target> {
    let address: IpAddr = text(instance, field)?.parse().ok()?;
    Some(Target {
        node: text(instance, "/id")?.to_owned(),
        address: SocketAddr::new(address, PORT),
    })
}

/// Whether Crossplane composed a pool for the workspace: by its label, and by the controller that made it.
fn is_pool_of(pool: &Value, workspace: &str) -> bool {
    let label = |name: &str| text(pool, &format!("/metadata/labels/crossplane.io~1{name}"));
    let is_named = label("claim-name") == Some(workspace)
        // Without claims, the composite has the name of the workspace.
        || label("claim-name").is_none() && label("composite") == Some(workspace);
    let kinds = ["GpuDevWorkspace", Kind::Claim.kind()];
    let is_composed = controller(pool).is_some_and(|owner| {
        text(owner, "/apiVersion") == Some(&Kind::Claim.api_version())
            && text(owner, "/kind").is_some_and(|kind| kinds.contains(&kind))
    });
    is_named && is_composed
}

/// What controls an object (Kubernetes, "Owners and Dependents").
fn controller(object: &Value) -> Option<&Value> {
    let mut owners = list(object, "/metadata/ownerReferences").iter();
    owners.find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
}

/// The name of the `StatefulSet` that controls a pod.
fn stateful_set(pod: &Value) -> Option<&str> {
    let owner = controller(pod)?;
    let is_stateful_set = text(owner, "/kind") == Some("StatefulSet")
        && text(owner, "/apiVersion") == Some("apps/v1");
    text(owner, "/name").filter(|_| is_stateful_set)
}

/// Whether a pod has this number in its StatefulSet (`StatefulSet`, "Stable Network ID").
fn is_number(pod: &Value, number: u16) -> bool {
    let name = text(pod, "/metadata/name").unwrap_or_default();
    stateful_set(pod).is_some_and(|set| name == format!("{set}-{number}"))
}

fn address(pod: &Value) -> Result<IpAddr, &'static str> {
    if text(pod, "/metadata/deletionTimestamp").is_some() {
        return Err("it is being deleted");
    }
    if text(pod, "/status/phase") != Some("Running") {
        return Err("it does not run yet");
    }
    // sshd of the node would answer in the place of the pod.
    if pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true) {
        return Err("it has the network of its node");
    }
    let ip = text(pod, "/status/podIP").ok_or("it has no address yet")?;
    if text(pod, "/status/hostIP") == Some(ip) {
        return Err("it has the address of its node");
    }
    ip.parse().map_err(|_| "its address is none")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim() -> Value {
        json!({
            "metadata": {"name": "work", "namespace": "dev-alice", "uid": "1"},
            "spec": {"parameters": {"placement": "Cluster", "distributed": {"nodes": 2}}},
            "status": {"phase": "Ready", "nodes": [{"name": "ws-work-0", "ip": "203.0.113.9"}]},
        })
    }

    fn pod(number: u16) -> Value {
        json!({
            "metadata": {
                "name": format!("ws-work-{number}"),
                "labels": {"platform.acme.io/cluster-workspace": "gpuws-work"},
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ws-work", "controller": true},
                ],
            },
            "spec": {},
            "status": {"phase": "Running", "podIP": format!("10.244.0.{number}"), "hostIP": "192.0.2.1"},
        })
    }

    fn found(host: &str, pods: &[Value]) -> Result<String, String> {
        let claim = claim();
        let found = super::pod(Workspace::new(&claim), &host.parse().unwrap(), pods);
        found
            .map(|target| target.address.to_string())
            .map_err(|problem| problem.reason)
    }

    #[test]
    fn a_pod_is_found_by_its_number_and_never_by_the_status_of_the_claim() {
        let pods = [pod(10), pod(1), pod(0)];
        assert_eq!(found("work", &pods).unwrap(), "10.244.0.0:22");
        assert_eq!(found("1.work.ws", &pods).unwrap(), "10.244.0.1:22");
        assert_eq!(found("2.work.ws", &pods).unwrap_err(), "Usage");
        assert_eq!(found("work", &[]).unwrap_err(), "Ready");
    }

    #[test]
    fn a_pod_that_only_looks_like_the_workspaces_is_not_connected_to() {
        let mut others = vec![];
        for (pointer, value) in [
            ("/metadata/labels", json!({})),
            (
                "/metadata/labels",
                json!({"platform.acme.io/cluster-workspace": "gpuws-other"}),
            ),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/ownerReferences/0/controller", json!(false)),
            ("/metadata/ownerReferences/0/kind", json!("ReplicaSet")),
            ("/metadata/ownerReferences/0/name", json!("ws")),
            ("/metadata/name", json!("ws-work-0-0")),
        ] {
            let mut other = pod(0);
            *other.pointer_mut(pointer).unwrap() = value;
            assert_eq!(
                found("work", std::slice::from_ref(&other)).unwrap_err(),
                "Ready",
                "{other}"
            );
            others.push(other);
        }
        others.push(pod(0));
        assert_eq!(found("work", &others).unwrap(), "10.244.0.0:22");
    }

    #[test]
    fn the_machine_under_a_pod_is_not_connected_to() {
        for (pointer, value) in [
            ("/spec", json!({"hostNetwork": true})),
            ("/status/podIP", json!("192.0.2.1")),
            ("/status/podIP", json!("")),
            ("/status/podIP", json!("localhost")),
            ("/status/phase", json!("Succeeded")),
            ("/metadata/deletionTimestamp", json!("2026-11-27T12:00:00Z")),
        ] {
            let mut other = pod(0);
            match other.pointer_mut(pointer) {
                Some(at) => *at = value,
                None => other["metadata"]["deletionTimestamp"] = value,
            }
            assert_eq!(
                found("work", &[other]).unwrap_err(),
                "PodNotRunning",
                "{pointer}"
            );
        }
    }

    fn pool(instances: &Value) -> Value {
        json!({
            "metadata": {
                "labels": {"crossplane.io/claim-name": "work", "crossplane.io/composite": "work-x1"},
                "ownerReferences": [{
                    "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace",
                    "name": "work-x1", "controller": true,
                }],
            },
            "status": {"atProvider": {"instances": instances}},
        })
    }

    fn machine(id: &str, state: &str) -> Value {
        let last = id.trim_start_matches("i-");
        json!({"id": id, "state": state, "publicIp": format!("203.0.113.{last}"),
               "privateIp": format!("10.0.0.{last}")})
    }

    fn reached(pools: &[Value], shown: &str, which: InstanceAddress) -> Result<String, String> {
        let claim = json!({
            "metadata": {"name": "work", "namespace": "dev-alice"},
            "status": {"phase": "Ready", "instanceId": shown, "publicIp": "198.51.100.66"},
        });
        let found = instance(
            Workspace::new(&claim),
            &"work".parse().unwrap(),
            pools,
            which,
        );
        found
            .map(|target| target.address.to_string())
            .map_err(|problem| problem.reason)
    }

    #[test]
    fn an_instance_is_that_of_the_pool_and_never_the_address_of_the_claim() {
        let both = [pool(&json!([
            machine("i-1", "running"),
            machine("i-2", "running")
        ]))];
        let private = |shown| reached(&both, shown, InstanceAddress::Private);
        assert_eq!(private("i-1").unwrap(), "10.0.0.1:22");
        assert_eq!(private("i-2").unwrap(), "10.0.0.2:22");
        assert_eq!(private("i-9").unwrap(), "10.0.0.2:22");
        let public = reached(&both, "i-1", InstanceAddress::Public);
        assert_eq!(public.unwrap(), "203.0.113.1:22");
        let ended = [pool(&json!([machine("i-1", "shutting-down")]))];
        assert_eq!(
            reached(&ended, "i-1", InstanceAddress::Private).unwrap_err(),
            "Ready"
        );
    }

    #[test]
    fn a_pool_that_crossplane_did_not_compose_for_the_workspace_is_not_reached() {
        for (pointer, value) in [
            ("/metadata/labels/crossplane.io~1claim-name", json!("other")),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/ownerReferences/0/controller", json!(false)),
            ("/metadata/ownerReferences/0/kind", json!("ConfigMap")),
            ("/metadata/ownerReferences/0/apiVersion", json!("v1")),
        ] {
            let mut other = pool(&json!([machine("i-1", "running")]));
            *other.pointer_mut(pointer).unwrap() = value;
            let found = reached(&[other], "i-1", InstanceAddress::Private);
            assert_eq!(found.unwrap_err(), "Ready", "{pointer}");
        }
    }

    #[test]
    fn without_claims_the_composite_has_the_name_of_the_workspace() {
        let mut composed = pool(&json!([machine("i-1", "running")]));
        composed["metadata"]["labels"] = json!({"crossplane.io/composite": "work"});
        composed["metadata"]["ownerReferences"][0]["kind"] = json!("GpuDevWorkspaceClaim");
        let found = reached(&[composed], "i-1", InstanceAddress::Private);
        assert_eq!(found.unwrap(), "10.0.0.1:22");
    }
}
