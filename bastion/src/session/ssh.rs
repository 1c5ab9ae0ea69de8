//! The one program that a session runs: OpenSSH's client, to workspaces.
//!
//! Its arguments are devctl's, made of checked names. It has no configuration and no files. Its way is
//! `gpu-bastion proxy`, which asks the broker as every session does. Its key is in the broker, which is its
//! agent. The host key comes from the claim, in the environment.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use bastion_core::protocol::{Answer, Ask, Call, Reply};
use devctl_core::host::{Piped, Program, Ran};
use devctl_core::name::Host;
use devctl_core::object::{Kind, Reference};
use devctl_core::ssh::client::Settings;
use devctl_core::ssh::host_keys;
use devctl_core::workspace::Workspace;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout};

use super::link::Link;

/// OpenSSH's client in the image.
const SSH: &str = "/usr/bin/ssh";
/// This program in the image.
const OWN: &str = "/usr/bin/gpu-bastion";
/// The broker's socket for ssh.
const AGENT: &str = "/run/gpu-bastion/agent.sock";
/// The grant of the login, for `gpu-bastion proxy`.
pub(crate) const GRANT: &str = "GPU_BASTION_GRANT";
/// The lines of known hosts, for `gpu-bastion host-keys`.
pub(crate) const HOST_KEYS: &str = "GPU_BASTION_HOST_KEYS";
/// What of the login's environment ssh gets.
const PASSED: [&str; 3] = ["HOME", "SSH_CONNECTION", "TERM"];

/// The settings by which ssh reaches workspaces from here.
pub(super) fn settings() -> Settings {
    vec![
        ("ProxyCommand", format!("{OWN} proxy %n")),
        ("KnownHostsCommand", format!("{OWN} host-keys")),
        ("UserKnownHostsFile", "none".into()),
        ("IdentityAgent", AGENT.into()),
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

/// Runs ssh with the session's streams.
pub(super) async fn run(link: &Link, program: &Program) -> io::Result<i32> {
    let mut command = tokio::process::Command::from(command(link, program)?);
    command.status().await.map(code)
}

/// Runs ssh and returns its output.
pub(super) async fn capture(link: &Link, program: &Program) -> io::Result<Ran> {
    let mut command = command(link, program)?;
    command.stdin(Stdio::null());
    let output = tokio::process::Command::from(command).output().await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ran {
        code: code(output.status),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    })
}

/// Runs ssh, whose output goes to standard output.
pub(super) async fn piped(link: &Link, program: &Program) -> io::Result<Piped> {
    let (mut child, mut output) = started(link, program)?;
    let bytes = tokio::io::copy(&mut output, &mut tokio::io::stdout()).await?;
    tokio::io::stdout().flush().await?;
    let code = code(child.wait().await?);
    Ok(Piped { code, bytes })
}

/// Starts ssh, and reads its output line by line.
pub(super) fn lines(
    link: &Link,
    program: &Program,
) -> io::Result<BoxStream<'static, io::Result<String>>> {
    let (child, output) = started(link, program)?;
    // The child is a part of the stream's state, and so ends with it.
    let state = (BufReader::new(output).lines(), child);
    let stream = futures::stream::try_unfold(state, |(mut output, child)| async move {
        let next = output.next_line().await?;
        Ok(next.map(|next| (next, (output, child))))
    });
    Ok(stream.boxed())
}

fn started(link: &Link, program: &Program) -> io::Result<(Child, ChildStdout)> {
    let mut child = tokio::process::Command::from(command(link, program)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.stdout.take();
    let output = output.ok_or_else(|| io::Error::other("it has no output"))?;
    Ok((child, output))
}

/// The exit code as shells give it: 128 and more for signals.
fn code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1)
}

fn command(link: &Link, program: &Program) -> io::Result<Command> {
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
        .map_or(&*link.namespace, |one| one.as_str());
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
