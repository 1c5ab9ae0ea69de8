//! The program of the bastion. One image has it beside OpenSSH's server:
//!
//! - `gpu-bastion broker` knows who may log in, asks the API server as them, connects to workspaces, and
//!   writes the audit log;
//! - `gpu-bastion sshd` starts sshd once the broker has prepared its files;
//! - sshd starts `gpu-bastion keys` for each key that a client offers, `gpu-bastion principals` for each
//!   certificate, and `gpu-bastion session` for each login. The image has no shell: this program is the
//!   shell of all accounts;
//! - the ssh that a session starts to a workspace starts `gpu-bastion proxy` and `gpu-bastion host-keys`;
//! - Kubernetes starts `gpu-bastion drain` before it ends a pod.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod broker;
mod channel;
mod door;
mod exit;
mod log;
mod search;
mod session;

/// The bastion of GPU workspaces
#[derive(Parser)]
#[command(name = "gpu-bastion", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the broker
    Broker(broker::Settings),
    /// Prepare and start OpenSSH's server
    Sshd(Place),
    /// Print the keys of an account, for sshd
    Keys(Keys),
    /// Print the principals of an account, for sshd
    Principals(Principals),
    /// Run one login, for sshd
    Session(Session),
    /// Connect standard input and output to a workspace, for the ssh of a session
    Proxy {
        /// Name of the workspace
        host: String,
        #[command(flatten)]
        place: Place,
    },
    /// Print the host keys of a workspace, for the ssh of a session
    HostKeys,
    /// Let a replica end: returns when no session is open. Kubernetes starts it before the pod ends
    Drain(Place),
    /// Check the audit log's chain
    Verify {
        /// Files of the log, the oldest first
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print lines of the audit log
    Search(search::Search),
}

/// Where the programs of one pod meet.
#[derive(Args, Clone)]
struct Place {
    /// Folder of the socket and the host key
    #[arg(long, default_value = "/run/gpu-bastion")]
    run: PathBuf,
}

#[derive(Args)]
struct Keys {
    /// Name of the account
    user: String,
    /// Type of the key
    kind: String,
    /// Key in base64
    blob: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
struct Principals {
    /// Name of the account
    user: String,
    /// Certificate in base64
    blob: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
struct Session {
    /// Secret that the broker made for this login
    #[arg(long)]
    grant: String,
    #[command(flatten)]
    place: Place,
}

fn main() -> ExitCode {
    let words = std::env::args_os().collect::<Vec<_>>();
    let Some(arguments) = arguments(&words) else {
        eprintln!("this account has no shell");
        return ExitCode::from(exit::REFUSED);
    };
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    match arguments.command {
        Command::Broker(settings) => broker::run(&settings),
        Command::Sshd(place) => door::start(&place.run),
        Command::Keys(given) => door::keys(&given.place.run, &given.user, &given.kind, &given.blob),
        Command::Principals(given) => door::principals(&given.place.run, &given.user, &given.blob),
        Command::Proxy { host, place } => session::proxy(&place.run, &host),
        Command::HostKeys => session::host_keys(),
        Command::Session(given) => session::run(&given.place.run, &given.grant),
        Command::Drain(place) => door::drain(&place.run),
        Command::Verify { files } => log::verify(&files),
        Command::Search(given) => search::run(&given),
    }
}

/// The arguments of this program. sshd starts the shell of an account with `-c` and the command that the
/// broker wrote into the key's line. ssh starts its `ProxyCommand` in the same way. These two commands, and
/// no other, are taken apart here.
fn arguments(words: &[std::ffi::OsString]) -> Option<Vec<std::ffi::OsString>> {
    let [program, flag, command] = words else {
        // A login shell has a name that begins with a hyphen, and no command.
        let name = words.first()?.to_string_lossy().into_owned();
        return (!name.starts_with('-') && words.len() > 1).then(|| words.to_vec());
    };
    if flag != "-c" {
        return Some(words.to_vec());
    }
    let command = command.to_str()?;
    let ours: Vec<&str> = command.split(' ').collect();
    let ours = match ours.as_slice() {
        ["gpu-bastion", rest @ ..] if matches!(rest, ["session", "--grant", _]) => rest,
        ["exec", "/usr/bin/gpu-bastion", rest @ ..] if matches!(rest, ["proxy", _]) => rest,
        _ => return None,
    };
    let ours = ours.iter().map(std::ffi::OsString::from);
    Some(std::iter::once(program.clone()).chain(ours).collect())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn taken(words: &[&str]) -> Option<Vec<OsString>> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        arguments(&words)
    }

    #[test]
    fn the_shell_of_an_account_runs_sessions_and_ways_to_workspaces_only() {
        assert_eq!(
            taken(&["x", "-c", "exec /usr/bin/gpu-bastion proxy work.ws"]).unwrap()[1..],
            ["proxy", "work.ws"].map(OsString::from)
        );
        assert_eq!(
            taken(&["gpu-bastion", "-c", "gpu-bastion session --grant 0f"]).unwrap()[1..],
            ["session", "--grant", "0f"].map(OsString::from)
        );
        for words in [
            &["-gpu-bastion"][..],
            &["gpu-bastion"],
            &["gpu-bastion", "-c", "id"],
            &["gpu-bastion", "-c", "gpu-bastion broker"],
            &["gpu-bastion", "-c", "gpu-bastion session --grant 0f; id"],
            &["gpu-bastion", "-c", "/usr/lib/openssh/sftp-server"],
            &["gpu-bastion", "-c", "exec /usr/bin/gpu-bastion broker"],
            &["gpu-bastion", "-c", "exec /usr/bin/gpu-bastion proxy a b"],
            &["gpu-bastion", "-c", "exec /tmp/gpu-bastion proxy a"],
        ] {
            assert_eq!(taken(words), None, "{words:?}");
        }
        assert!(taken(&["gpu-bastion", "keys", "alice", "ssh-ed25519", "AAA"]).is_some());
    }
}
