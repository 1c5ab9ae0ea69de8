//! The one program that a session runs: OpenSSH's client, to workspaces.
//!
//! Its arguments are devctl's, made of checked names. It has no configuration and no files. Its way is
//! `gpu-bastion proxy`, which asks the broker as every session does. Its key is in the broker, which is its
//! agent. The host key comes from the claim, in the environment.

use std::io;
use std::path::Path;
use std::process::Command;

use bastion_core::protocol::{Answer, Ask, Call, Reply};
use devctl_core::host::{Program, Settings};
use devctl_core::name::Host;
use devctl_core::object::{Kind, Reference};
use devctl_core::ssh::host_keys;
use devctl_core::workspace::Workspace;

use super::link::Link;
use crate::channel;

/// OpenSSH's client in the image.
const SSH: &str = "/usr/bin/ssh";
/// This program in the image.
const OWN: &str = "/usr/bin/gpu-bastion";
/// The grant of the login, for `gpu-bastion proxy`.
pub(crate) const GRANT: &str = "GPU_BASTION_GRANT";
/// The lines of known hosts, for `gpu-bastion host-keys`.
pub(crate) const HOST_KEYS: &str = "GPU_BASTION_HOST_KEYS";
/// What of the login's environment ssh gets.
const PASSED: [&str; 3] = ["HOME", "SSH_CONNECTION", "TERM"];

/// The settings by which ssh reaches workspaces from here.
pub(super) fn settings(run: &Path) -> Settings {
    vec![
        ("ProxyCommand", format!("{OWN} proxy %n")),
        ("KnownHostsCommand", format!("{OWN} host-keys")),
        ("UserKnownHostsFile", "none".into()),
        ("IdentityAgent", channel::agent(run).display().to_string()),
        ("IdentityFile", "none".into()),
        ("PreferredAuthentications", "publickey".into()),
        ("BatchMode", "yes".into()),
        ("EscapeChar", "none".into()),
        ("ForwardAgent", "no".into()),
        ("ForwardX11", "no".into()),
        ("ClearAllForwardings", "yes".into()),
        ("PermitLocalCommand", "no".into()),
        ("ControlMaster", "no".into()),
        ("LogLevel", "ERROR".into()),
    ]
}

/// ssh to a workspace, as devctl wants to run it.
pub(super) fn command(link: &Link, program: &Program) -> io::Result<Command> {
    let host = destination(program)?;
    let mut command = Command::new(SSH);
    command
        .args(["-F", "none"])
        .args(&program.arguments)
        .env_clear()
        // ssh starts `ProxyCommand` by this program.
        .env("SHELL", OWN)
        .env(GRANT, &link.grant)
        .env(HOST_KEYS, host_keys(link, &host)?);
    for name in PASSED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// The host that ssh is started for.
fn destination(program: &Program) -> io::Result<Host> {
    let mut rest = program.arguments.iter().skip_while(|word| *word != "--");
    let host = rest.nth(1).and_then(|word| word.parse().ok());
    host.filter(|_| program.name == "ssh").ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the bastion does not run {}", program.name),
        )
    })
}

/// The line of known hosts for a workspace, from its claim.
fn host_keys(link: &Link, host: &Host) -> io::Result<String> {
    let namespace = host
        .namespace
        .as_ref()
        .map_or(&*link.welcome.namespace, |one| one.as_str());
    let claim = Reference::new(Kind::Claim, namespace, host.workspace.as_str());
    match link.ask(&Ask::Api(Call::Get(claim)))? {
        Answer::Api(Ok(Reply::Object(claim))) => {
            let pinned = host_keys::pin("", host, Workspace::new(&claim));
            let pinned = pinned.map_err(|problem| io::Error::other(problem.message))?;
            Ok(pinned.content)
        }
        Answer::Api(Err(refused)) => Err(io::Error::other(refused.message)),
        _ => Err(io::Error::other("the broker answered something else")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_starts_ssh_to_a_workspace_and_nothing_else() {
        let host = destination(&Program::new("ssh", ["-oUser=x", "--", "work.ws", "id"]));
        assert_eq!(host.unwrap().to_string(), "work.ws");
        for (name, arguments) in [
            ("scp", vec!["--", "work.ws"]),
            ("/bin/sh", vec!["--", "work.ws"]),
            ("ssh", vec!["work.ws"]),
            ("ssh", vec!["--"]),
            ("ssh", vec!["--", "-oProxyCommand=x"]),
            ("ssh", vec!["--", "developer@192.0.2.1"]),
        ] {
            assert!(destination(&Program::new(name, arguments)).is_err());
        }
    }
}
