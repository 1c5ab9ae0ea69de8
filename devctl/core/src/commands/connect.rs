//! Commands that connect by the user's own ssh: `ssh`, `cp`, `port-forward`, `code` and `jetbrains`.

use serde_json::Value;

use crate::commands::call::Call;
use crate::commands::{lifecycle, proxy, ready};
use crate::grammar::connecting::{Code as CodeArguments, Copy, Jetbrains, PortForward, Ssh};
use crate::host::Program;
use crate::name::{Host, Name};
use crate::object::Reference;
use crate::problem::{Code, Problem};
use crate::text::Line;
use crate::workspace::Workspace;

/// How long `ssh --start` waits.
const START: std::time::Duration = std::time::Duration::from_mins(30);

/// Logs in, or runs a command.
pub(super) async fn ssh(call: Call<'_>, given: &Ssh) -> Result<u8, Problem> {
    let host = Host::new(given.name.clone(), given.replica);
    reachable(call, &host, given.start).await?;
    let program = call.with_ssh(|client| client.ssh(&host, &[], &given.command))?;
    call.run(&program).await
}

/// Copies files.
pub(super) async fn copy(call: Call<'_>, given: &Copy) -> Result<u8, Problem> {
    let (from, to) = (remote(&given.from)?, remote(&given.to)?);
    let host = match (&from, &to) {
        (Some((host, _)), None) | (None, Some((host, _))) => host.clone(),
        (Some(_), Some(_)) => {
            return Err(Problem::usage(
                "TO",
                "copy from or to this machine: one side has no NAME:",
            ));
        }
        (None, None) => {
            return Err(Problem::usage(
                "FROM",
                "name the workspace on one side, as NAME:PATH",
            ));
        }
    };
    reachable(call, &host, false).await?;
    let side = |remote: &Option<(Host, &str)>, given: &str| match remote {
        Some((host, path)) => format!("{host}:{path}"),
        // A path with a colon is a host for scp, unless it begins with a folder.
        None if given.contains(':') && !given.starts_with('/') => format!("./{given}"),
        None => given.to_owned(),
    };
    let (from, to) = (side(&from, &given.from), side(&to, &given.to));
    let program = call.with_ssh(|client| client.scp(given.recursive, &from, &to))?;
    call.run(&program).await
}

/// Forwards ports.
pub(super) async fn port_forward(call: Call<'_>, given: &PortForward) -> Result<u8, Problem> {
    let host = Host::new(given.name.clone(), given.replica);
    let mut forwards = Vec::new();
    for ports in &given.ports {
        let (local, remote) = ports.split_once(':').unwrap_or((ports, ports));
        let number = |text: &str| {
            text.parse::<u16>()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| {
                    Problem::usage("PORT", format!("{text}: write a port, or LOCAL:REMOTE"))
                })
        };
        let (local, remote) = (number(local)?, number(remote)?);
        forwards.push(format!("-L127.0.0.1:{local}:127.0.0.1:{remote}"));
        let line = format!("127.0.0.1:{local} is port {remote} of {}", given.name);
        call.host.terminal.note(&line.into());
    }
    reachable(call, &host, false).await?;
    let mut flags = vec!["-N", "-o", "ExitOnForwardFailure=yes"];
    flags.extend(forwards.iter().map(String::as_str));
    let program = call.with_ssh(|client| client.ssh(&host, &flags, &[]))?;
    call.run(&program).await
}

/// Opens VS Code.
pub(super) async fn code(call: Call<'_>, given: &CodeArguments) -> Result<u8, Problem> {
    let host = host(&given.name);
    reachable(call, &host, false).await?;
    configured(call)?;
    let remote = format!("ssh-remote+{host}");
    let program = Program::new(&given.program, ["--remote", &remote, &given.path]);
    if !call.host.programs.is_installed(&given.program) {
        let next = format!("install it, or connect an editor to {host} by SSH");
        let message = format!("{} is not installed here", given.program);
        return Err(Problem::new(Code::Failed, "NotInstalled", message).next(next));
    }
    call.run(&program).await
}

/// Opens `JetBrains` Gateway.
pub(super) async fn jetbrains(call: Call<'_>, given: &Jetbrains) -> Result<u8, Problem> {
    let host = host(&given.name);
    let claim = reachable(call, &host, false).await?;
    configured(call)?;
    // Gateway has an SSH library of its own, which may read the keys before the proxy has run.
    proxy::pin(call, &call.known_hosts(), &host, Workspace::new(&claim))?;
    let link = format!(
        "jetbrains-gateway://connect#host={host}&user={}&port={}&type=ssh&projectPath={}",
        crate::ssh::USER,
        crate::ssh::PORT,
        encoded(&given.path),
    );
    if given.no_open {
        call.host.terminal.data(&link.into())?;
        return Ok(0);
    }
    if let Some(opener) = opener(call) {
        return call.run(&Program::new(opener, [link])).await;
    }
    call.host
        .terminal
        .note(&Line::from("open this link in JetBrains Gateway:"));
    call.host.terminal.data(&link.into())?;
    Ok(0)
}

/// Checks that the workspace can be reached before another program tries, so that the message is
/// devctl's own, and returns the claim. A stopped workspace is started if that is asked for.
pub(super) async fn reachable(call: Call<'_>, host: &Host, start: bool) -> Result<Value, Problem> {
    let target: Reference = proxy::reference(call, host);
    let claim = call.read(&target).await?;
    match proxy::destination(Workspace::new(&claim), host) {
        Ok(_) => Ok(claim),
        Err(problem) if start && problem.code == Code::NotRunning => {
            let stored = lifecycle::started(call, &target, claim).await?;
            ready::until_ready(call, &target, stored, START).await
        }
        Err(problem) => Err(problem),
    }
}

/// The program that opens files and links as the user's desktop does; none without a desktop.
pub(super) fn opener(call: Call<'_>) -> Option<&'static str> {
    let programs = call.host.programs;
    ["xdg-open", "open"]
        .into_iter()
        .find(|name| programs.is_installed(name))
}

/// Checks that editors find workspaces by ssh's configuration.
fn configured(call: Call<'_>) -> Result<(), Problem> {
    let path = call.ssh_configuration();
    let is_written = call
        .host
        .files
        .read(&path)
        .is_ok_and(|content| content.is_some());
    if is_written {
        return Ok(());
    }
    let message = "editors find workspaces by ssh's configuration, which does not name them yet";
    Err(Problem::new(Code::Failed, "NotConfigured", message).next("devctl config-ssh --write"))
}

/// The two parts of `NAME:PATH`; none for a file of this machine.
fn remote(text: &str) -> Result<Option<(Host, &str)>, Problem> {
    let Some((host, path)) = text.split_once(':') else {
        return Ok(None);
    };
    if host.contains('/') {
        return Ok(None);
    }
    let host: Result<Host, String> = host.parse();
    let host = host.map_err(|message| Problem::usage("NAME:PATH", message))?;
    Ok(Some((host, path)))
}

/// A text as a part of a URL (RFC 3986).
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let encode = |byte: u8| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(encode).collect()
}

/// The name of a workspace for ssh.
pub(super) fn host(name: &Name) -> Host {
    Host::new(name.clone(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_of_a_copy_is_a_workspace_or_a_file() {
        assert_eq!(remote("my-dev:data/x").unwrap().unwrap().1, "data/x");
        assert_eq!(
            remote("0.my-dev:x").unwrap().unwrap().0.to_string(),
            "0.my-dev.ws"
        );
        for file in ["x", "./a:b", "/a:b"] {
            assert_eq!(remote(file).unwrap(), None, "{file}");
        }
        assert!(remote("-oProxyCommand=x:y").is_err());
    }

    #[test]
    fn a_path_is_a_part_of_a_link() {
        assert_eq!(encoded("/home/a b&c"), "/home/a%20b%26c");
    }
}
