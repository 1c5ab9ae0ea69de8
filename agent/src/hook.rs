//! The hooks before a stop: first the platform's, then the owner's. Both run as the owner.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, geteuid};

use crate::arguments::PreStop;
use crate::places::Places;
use crate::signals;
use crate::stop::{self, Reason};

const OF_THE_PLATFORM: &str = "/etc/gpu-workspace/hooks/pre-stop";
const OF_THE_OWNER: &str = ".config/gpu-workspace/pre-stop";
const LOG: &str = "/var/log/gpu-workspace-hooks.log";
const PASSWD: &str = "/etc/passwd";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// The user who runs the hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    name: String,
    user: u32,
    group: u32,
    home: String,
    shell: String,
}

/// Runs the hooks. If another process already runs them before the same stop, waits for it.
pub fn run(places: &Places, given: &PreStop) -> Result<ExitCode, String> {
    if given.only_at_shutdown && !is_shutting_down().map_err(|e| format!("systemctl: {e}"))? {
        return Ok(ExitCode::SUCCESS);
    }
    let patience = Duration::from_secs(given.timeout);
    before_stop(places, &given.owner, given.reason, patience)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the hooks unless they have already run before this stop.
pub fn before_stop(
    places: &Places,
    owner: &str,
    reason: Reason,
    patience: Duration,
) -> Result<(), String> {
    let passwd = places.at(PASSWD);
    let text = fs::read_to_string(&passwd).map_err(|e| format!("{}: {e}", passwd.display()))?;
    let owner = find(&text, owner).ok_or(format!("there is no user {owner}"))?;
    let (file, log) = (places.stop(), log(places));
    let done = stop::once(&file, reason.name(), || {
        run_all(places, &log, &owner, reason, patience)
    });
    let done = done.map_err(|error| format!("{}: {error}", file.display()))?;
    let done = done.unwrap_or(Ok(()));
    done.map_err(|error| format!("{}: {error}", log.display()))
}

/// Whether systemd stops the whole machine, and not only a service.
fn is_shutting_down() -> io::Result<bool> {
    let said = Command::new("systemctl")
        .arg("is-system-running")
        .output()?;
    Ok(String::from_utf8_lossy(&said.stdout).trim() == "stopping")
}

/// The path of the log. In a pod the agent does not run as root and cannot write to /var/log.
fn log(places: &Places) -> PathBuf {
    if geteuid().is_root() {
        places.at(LOG)
    } else {
        places.hook_log()
    }
}

fn run_all(
    places: &Places,
    log: &Path,
    owner: &Owner,
    reason: Reason,
    patience: Duration,
) -> io::Result<()> {
    let end = Instant::now() + patience;
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o644)
        .open(log)?;
    let home = places.at(&owner.home);
    for hook in [places.at(OF_THE_PLATFORM), home.join(OF_THE_OWNER)] {
        if !is_program(&hook) {
            continue;
        }
        let left = end.saturating_duration_since(Instant::now());
        let say = |log: &mut File, what: &str| {
            let now = Timestamp::now();
            writeln!(
                log,
                "{now:.0} {} ({}): {what}",
                hook.display(),
                reason.name()
            )
        };
        if left.is_zero() {
            say(&mut log, "no time was left")?;
            continue;
        }
        say(&mut log, "starts")?;
        let mut command = command(&hook, owner, geteuid().is_root());
        command
            .env_clear()
            .envs(environment(owner, &home, reason, left))
            .current_dir(if home.is_dir() { &home } else { Path::new("/") })
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?);
        let outcome = match attend(command, left) {
            Ok(Some(status)) => format!("ended with {status}"),
            Ok(None) => format!("was ended after {} s", left.as_secs()),
            Err(error) => format!("did not start: {error}"),
        };
        say(&mut log, &outcome)?;
    }
    Ok(())
}

/// The command of a hook. It runs as the owner with the owner's groups, and never as root.
fn command(hook: &Path, owner: &Owner, is_root: bool) -> Command {
    if !is_root {
        return Command::new(hook);
    }
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={}", owner.user))
        .arg(format!("--regid={}", owner.group))
        .args(["--init-groups", "--"])
        .arg(hook);
    command
}

/// The environment of a hook.
fn environment(
    owner: &Owner,
    home: &Path,
    reason: Reason,
    patience: Duration,
) -> Vec<(&'static str, String)> {
    vec![
        ("HOME", home.display().to_string()),
        ("USER", owner.name.clone()),
        ("LOGNAME", owner.name.clone()),
        ("SHELL", owner.shell.clone()),
        ("PATH", PATH.to_owned()),
        ("WORKSPACE_STOP_REASON", reason.name().to_owned()),
        ("WORKSPACE_STOP_SECONDS", patience.as_secs().to_string()),
    ]
}

/// Waits for a command and its process group; none if it had to be killed.
fn attend(mut command: Command, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = signals::spawn(command.process_group(0))?;
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // The receiver is gone if the command has survived SIGKILL.
        let _ = sender.send(child.wait());
    });
    if let Ok(status) = receiver.recv_timeout(patience) {
        return status.map(Some);
    }
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        // The process group may have ended by itself.
        let _ = killpg(group, signal);
        if receiver.recv_timeout(GRACE).is_ok() {
            break;
        }
    }
    Ok(None)
}

fn is_program(path: &PathBuf) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Finds a user in the text of /etc/passwd (passwd(5)). root is refused as an owner.
fn find(passwd: &str, name: &str) -> Option<Owner> {
    let line = passwd
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let fields: Vec<&str> = line.split(':').collect();
    let [_, _, user, group, _, home, shell] = fields[..] else {
        return None;
    };
    let owner = Owner {
        name: name.to_owned(),
        user: user.parse().ok()?,
        group: group.parse().ok()?,
        home: home.to_owned(),
        shell: shell.to_owned(),
    };
    (owner.user != 0).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\n\
        developer2:x:7:7::/nowhere:/bin/sh\n\
        developer:x:1001:1002:,,,:/home/developer:/bin/bash\n";

    fn owner() -> Owner {
        find(USERS, "developer").unwrap()
    }

    #[test]
    fn a_hook_never_runs_as_root() {
        assert_eq!(find(USERS, "root"), None);
        assert_eq!(find(USERS, "nobody"), None);
        let command = command(Path::new("/hook"), &owner(), true);
        assert_eq!(command.get_program(), "setpriv");
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(
            arguments,
            [
                "--reuid=1001",
                "--regid=1002",
                "--init-groups",
                "--",
                "/hook"
            ]
        );
    }

    #[test]
    fn a_hook_gets_reason_and_time_and_no_secret_of_the_agent() {
        let home = Path::new("/home/developer");
        let patience = Duration::from_millis(57_900);
        let told = environment(&owner(), home, Reason::Interruption, patience);
        let names: Vec<&str> = told.iter().map(|(name, _)| *name).collect();
        let expected = ["HOME", "USER", "LOGNAME", "SHELL", "PATH"];
        assert_eq!(names[..5], expected);
        assert_eq!(
            told[5],
            ("WORKSPACE_STOP_REASON", "interruption".to_owned())
        );
        assert_eq!(told[6], ("WORKSPACE_STOP_SECONDS", "57".to_owned()));
        assert_eq!(told.len(), 7);
    }

    #[test]
    fn a_hook_that_hangs_is_ended_with_what_it_started() {
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "sleep 100 & wait"]);
        let started = Instant::now();
        assert_eq!(attend(hangs, Duration::from_millis(50)).unwrap(), None);
        assert!(started.elapsed() < GRACE, "SIGTERM is enough");
        let mut ends = Command::new("sh");
        ends.args(["-c", "exit 3"]);
        let ended = attend(ends, Duration::from_secs(20)).unwrap();
        assert_eq!(ended.unwrap().code(), Some(3));
    }
}
