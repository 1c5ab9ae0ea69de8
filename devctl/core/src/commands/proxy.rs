//! `proxy`: the way of ssh to a workspace.

use std::path::Path;

use api::workspace::Placement;

use crate::commands::call::Call;
use crate::grammar::connecting::Proxy;
use crate::host::Destination;
use crate::name::Host;
use crate::object::{Kind, Reference};
use crate::problem::{Code, Problem};
use crate::ssh::{PORT, host_keys};
use crate::workspace::Workspace;

/// Connects standard input and output to a workspace. Before, it writes the workspace's host keys,
/// which ssh reads afterwards.
pub(super) async fn proxy(call: Call<'_>, given: &Proxy) -> Result<u8, Problem> {
    if given.port != PORT {
        let message =
            format!("a workspace is reached at port {PORT} only; forward others with ssh -L");
        return Err(Problem::usage("PORT", message));
    }
    let claim = call.read(&reference(call, &given.host)).await?;
    let workspace = Workspace::new(&claim);
    let destination = destination(workspace, &given.host)?;
    let known_hosts = given
        .known_hosts
        .clone()
        .unwrap_or_else(|| call.known_hosts());
    pin(call, &known_hosts, &given.host, workspace)?;
    let connected = call.host.reach.connect(&given.host, &destination).await;
    connected.map_err(|error| out_of_reach(workspace, &destination, &error))?;
    Ok(0)
}

/// The claim of a host.
pub(super) fn reference(call: Call<'_>, host: &Host) -> Reference {
    let namespace = host
        .namespace
        .as_ref()
        .map_or(call.host.api.namespace(), |one| one.as_str());
    Reference::new(Kind::Claim, namespace, host.workspace.as_str())
}

/// Where the workspace is. Its placement decides the way.
pub(super) fn destination(workspace: Workspace<'_>, host: &Host) -> Result<Destination, Problem> {
    let object = workspace.reference().to_string();
    match workspace.placement() {
        Placement::Ec2 => {
            if host.replica.unwrap_or(0) != 0 {
                return Err(
                    Problem::usage("--replica", "an EC2 workspace has one machine").of(object),
                );
            }
            let address = workspace
                .address()
                .ok_or_else(|| workspace.not_running(workspace.state()))?;
            Ok(Destination::Address {
                address: address.to_owned(),
                port: PORT,
            })
        }
        Placement::Cluster => {
            let number = host.replica.unwrap_or(0);
            let nodes = workspace.nodes();
            let count = workspace.replicas();
            if number >= count {
                let message = format!(
                    "it has {count} pod{}, from 0",
                    if count == 1 { "" } else { "s" }
                );
                return Err(Problem::usage("--replica", message).of(object));
            }
            let suffix = format!("-{number}");
            let node = nodes.iter().find(|node| node.name.ends_with(&suffix));
            let node = node.ok_or_else(|| workspace.not_running(workspace.state()))?;
            if !node.ready {
                let message = node.message.unwrap_or("it is not ready");
                return Err(workspace.not_running(format!("pod {}: {message}", node.name)));
            }
            Ok(Destination::Pod {
                namespace: workspace.namespace().to_owned(),
                name: node.name.to_owned(),
                port: PORT,
            })
        }
    }
}

/// Writes the host keys of a workspace to the file that ssh reads.
pub(super) fn pin(
    call: Call<'_>,
    path: &Path,
    host: &Host,
    workspace: Workspace<'_>,
) -> Result<(), Problem> {
    let files = call.host.files;
    let failed = |error: std::io::Error| {
        Problem::new(
            Code::Failed,
            "KnownHosts",
            format!("{}: {error}", path.display()),
        )
    };
    let _lock = files.lock(path).map_err(failed)?;
    let before = files.read(path).map_err(failed)?.unwrap_or_default();
    let pinned = host_keys::pin(&before, host, workspace)?;
    if pinned.content != before {
        files.replace(path, &pinned.content).map_err(failed)?;
    }
    if pinned.is_new_machine {
        let line = format!("{host} is another machine than last time, with another host key");
        call.host.terminal.note(&line.into());
    }
    Ok(())
}

fn out_of_reach(
    workspace: Workspace<'_>,
    destination: &Destination,
    error: &std::io::Error,
) -> Problem {
    let message = match destination {
        Destination::Address { address, port } => format!("{address}, port {port}: {error}"),
        Destination::Pod { name, .. } => format!("pod {name}: {error}"),
    };
    Problem::new(Code::OutOfReach, "OutOfReach", message)
        .of(workspace.reference().to_string())
        .next(format!("devctl doctor {}", workspace.name()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn to(claim: &Value, host: &str) -> Result<Destination, Problem> {
        destination(Workspace::new(claim), &host.parse().unwrap())
    }

    #[test]
    fn an_instance_is_reached_at_its_address_while_it_has_one() {
        let claim = json!({
            "metadata": {"name": "a", "namespace": "n"},
            "status": {"phase": "Provisioning", "publicIp": "203.0.113.7", "privateIp": "10.0.0.7"},
        });
        let address = Destination::Address {
            address: "203.0.113.7".into(),
            port: 22,
        };
        assert_eq!(to(&claim, "a.ws").unwrap(), address);
        assert_eq!(to(&claim, "1.a.ws").unwrap_err().code, Code::Usage);
        let stopped = json!({"metadata": {"name": "a"}, "status": {"phase": "Stopped"}});
        let problem = to(&stopped, "a.ws").unwrap_err();
        assert_eq!(
            (problem.code, problem.next.as_deref()),
            (Code::NotRunning, Some("devctl start a"))
        );
    }

    #[test]
    fn a_pod_is_found_by_its_number_and_not_by_its_place_in_the_list() {
        let claim = json!({
            "metadata": {"name": "t", "namespace": "n"},
            "spec": {"parameters": {"placement": "Cluster", "distributed": {"nodes": 12}}},
            "status": {"phase": "Provisioning", "nodes": [
                {"name": "ws-t-10", "ready": true, "host": "x"},
                {"name": "ws-t-1", "ready": false, "message": "it starts"},
                {"name": "ws-t-0", "ready": true},
            ]},
        });
        let pod = |name: &str| Destination::Pod {
            namespace: "n".into(),
            name: name.into(),
            port: 22,
        };
        assert_eq!(to(&claim, "t.ws").unwrap(), pod("ws-t-0"));
        assert_eq!(to(&claim, "10.t.ws").unwrap(), pod("ws-t-10"));
        let problem = to(&claim, "1.t.ws").unwrap_err();
        assert!(problem.message.contains("it starts"));
        assert_eq!(
            to(&claim, "12.t.ws").unwrap_err().field.as_deref(),
            Some("--replica")
        );
        assert_eq!(to(&claim, "2.t.ws").unwrap_err().code, Code::NotRunning);
    }
}
