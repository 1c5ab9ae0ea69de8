//! What sshd needs: its start, and the keys of an account.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use bastion_core::protocol::{Answer, Ask};

use crate::channel::Channel;
use crate::exit::REFUSED;

/// OpenSSH's server.
const SSHD: &str = "/usr/sbin/sshd";
/// Its configuration, which is in the image.
const CONFIGURATION: &str = "/etc/gpu-bastion/sshd_config";
/// How often the start asks for the broker.
const PAUSE: Duration = Duration::from_millis(200);

/// Waits until the broker has prepared its files, and becomes sshd.
pub(crate) fn start(run: &Path) -> ExitCode {
    // sshd keeps the process id of this program, by which the broker knows what sshd starts.
    while !matches!(listens(run), Ok(Answer::Recorded)) {
        std::thread::sleep(PAUSE);
    }
    let error = Command::new(SSHD)
        .args(["-D", "-e", "-f", CONFIGURATION])
        .exec();
    eprintln!("{SSHD}: {error}");
    ExitCode::FAILURE
}

fn listens(run: &Path) -> std::io::Result<Answer> {
    Channel::open(run)?.ask(&Ask::Listen)
}

/// Waits until no session is open.
pub(crate) fn drain(run: &Path) -> ExitCode {
    match Channel::open(run).and_then(|mut channel| channel.ask(&Ask::Drain)) {
        Ok(Answer::Recorded) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(REFUSED),
        Err(error) => {
            eprintln!("the broker does not answer: {error}");
            ExitCode::from(REFUSED)
        }
    }
}

/// Prints the lines of `authorized_keys` for a key that a client offers.
pub(crate) fn keys(run: &Path, user: &str, kind: &str, blob: &str) -> ExitCode {
    printed(
        run,
        &Ask::Keys {
            user: user.to_owned(),
            kind: kind.to_owned(),
            blob: blob.to_owned(),
        },
    )
}

/// Prints the line of the principal for a certificate that a client offers.
pub(crate) fn principals(run: &Path, user: &str, blob: &str) -> ExitCode {
    printed(
        run,
        &Ask::Certificate {
            user: user.to_owned(),
            blob: blob.to_owned(),
        },
    )
}

fn printed(run: &Path, ask: &Ask) -> ExitCode {
    match Channel::open(run).and_then(|mut channel| channel.ask(ask)) {
        Ok(Answer::Keys(lines)) => {
            print!("{lines}");
            ExitCode::SUCCESS
        }
        Ok(_) => ExitCode::from(REFUSED),
        Err(error) => {
            eprintln!("the broker does not answer: {error}");
            ExitCode::from(REFUSED)
        }
    }
}
