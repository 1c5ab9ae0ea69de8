//! The way from the broker to workspaces: where one is, and the connection.

use std::io;
use std::time::Duration;

use api::workspace::Placement;
use bastion_core::protocol::is_own;
use bastion_core::target::{self, Target};
use devctl_api_server::ApiServer;
use devctl_core::host::{Api as _, Scope};
use devctl_core::name::Host;
use devctl_core::object::{Kind, Reference};
use devctl_core::problem::{Code, Problem};
use devctl_core::workspace::Workspace;
use tokio::net::TcpStream;

use super::api::Person;

/// How long a connection to a workspace may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Finds the machine of a host, if the person may read the claim: the UID of the claim, the host, and the
/// machine.
pub(super) async fn find(person: &Person, host: &str) -> Result<(String, String, Target), Problem> {
    let host: Result<Host, String> = host.parse();
    let host = host.map_err(|message| Problem::usage("NAME", message))?;
    if !is_own(&host, &person.namespace) {
        let message = format!(
            "you reach workspaces of namespace {} only",
            person.namespace
        );
        return Err(Problem::new(Code::Refused, "OtherNamespace", message).of(host.to_string()));
    }
    let reference = Reference::new(Kind::Claim, &person.namespace, host.workspace.as_str());
    let api = person.api();
    let claim = api.get(&reference).await;
    let claim = claim.map_err(|refused| refused.problem(&reference))?;
    let workspace = Workspace::new(&claim);
    let scope = Scope::Namespace(person.namespace.clone());
    let listed = |kind, api: ApiServer| {
        let scope = &scope;
        async move {
            let all = Reference::new(kind, &person.namespace, "");
            let listed = api.list(kind, scope).await;
            listed.map_err(|refused| refused.problem(&all))
        }
    };
    let found = match workspace.placement() {
        Placement::Cluster => target::pod(workspace, &host, &listed(Kind::Pod, api).await?)?,
        // The person has no right to read pools.
        Placement::Ec2 => {
            let pools = listed(Kind::SpotPool, person.bastion()).await?;
            target::instance(workspace, &host, &pools, person.instance_address())?
        }
    };
    Ok((workspace.uid().to_owned(), host.to_string(), found))
}

pub(super) async fn dial(target: &Target) -> Result<std::net::TcpStream, Problem> {
    let out_of_reach = |why: String| {
        Problem::new(
            Code::OutOfReach,
            "OutOfReach",
            format!("{}: {why}", target.node),
        )
        .next("try again; if it lasts, ask the platform team whether the bastion may reach workspaces")
    };
    let connected = tokio::time::timeout(CONNECT, TcpStream::connect(target.address)).await;
    let stream = connected
        .map_err(|_| out_of_reach("it does not answer".into()))?
        .map_err(|error| out_of_reach(error.to_string()))?;
    let plain = |stream: TcpStream| {
        stream.set_nodelay(true)?;
        let stream = stream.into_std()?;
        // The session reads and writes with threads.
        stream.set_nonblocking(false)?;
        Ok(stream)
    };
    plain(stream).map_err(|error: io::Error| out_of_reach(error.to_string()))
}
