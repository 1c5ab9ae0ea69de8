//! `run`: runs a command that counts as a job.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use crate::arguments::Run;
use crate::jobs;
use crate::places::Places;

/// The exit code if the command was not started, as in `env` and `nohup`.
pub const NOT_STARTED: u8 = 125;
const NOT_FOUND: u8 = 127;

/// The signals that are passed on to the command. Signals of a terminal reach the command without
/// help, because it is in the same process group.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCONT,
];
/// `si_code` of signals that the kernel sends, for example at a terminal (sigaction(2)).
const SI_KERNEL: i32 = 0x80;

/// Runs the command and returns its exit code. If a signal ended the command, the code is 128 plus
/// the number of the signal, as in shells.
pub fn run(places: &Places, given: &Run) -> Result<ExitCode, String> {
    let [program, arguments @ ..] = given.command.as_slice() else {
        return Err("name a command: gpu-workspace-agent run -- COMMAND".into());
    };
    let folder = places.jobs();
    let name = given.name.clone().unwrap_or_else(|| {
        let name = Path::new(program).file_name().unwrap_or(program);
        name.to_string_lossy().into_owned()
    });
    let job = jobs::register(&folder, &name, Timestamp::now()).map_err(|error| {
        let folder = folder.display();
        format!("cannot register the job in {folder}: {error}; does the agent run here?")
    })?;
    let early = Early::register().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    let mut child = match command.args(arguments).arg0(program).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("gpu-workspace-agent: {}: {error}", program.display());
            return Ok(ExitCode::from(NOT_FOUND));
        }
    };
    // The signals are blocked after the start of the command, which would inherit the mask. Before,
    // `early` notes them.
    let mut signals: SigSet = PASSED_ON.into_iter().collect();
    signals.add(Signal::SIGCHLD);
    signals.thread_block().map_err(|error| error.to_string())?;
    let signals = SignalFd::new(&signals).map_err(|error| error.to_string())?;
    let status = early
        .received()
        .try_for_each(|signal| pass_on(signal, &child));
    let status = status.and_then(|()| attend(&mut child, &signals));
    let status = status.map_err(|error| error.to_string())?;
    drop(job);
    Ok(ExitCode::from(code(status)))
}

/// The signals that come while the command is started. Their handlers do not reach the command,
/// because a new program begins without the handlers of its parent.
struct Early(Vec<(Signal, Arc<AtomicBool>)>);

impl Early {
    fn register() -> std::io::Result<Self> {
        let register = |signal: Signal| {
            let came = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal as i32, Arc::clone(&came))?;
            Ok((signal, came))
        };
        let all: std::io::Result<_> = PASSED_ON.into_iter().map(register).collect();
        all.map(Self)
    }

    /// The signals that came. A terminal's signal reaches the command a second time.
    fn received(&self) -> impl Iterator<Item = Signal> {
        let came = self.0.iter();
        came.filter_map(|(signal, came)| came.load(Ordering::Relaxed).then_some(*signal))
    }
}

/// Sends a signal to the command. The command may have ended meanwhile: it stays a process until
/// this program waits for it.
fn pass_on(signal: Signal, child: &Child) -> std::io::Result<()> {
    let child = i32::try_from(child.id()).map_err(std::io::Error::other)?;
    Ok(kill(Pid::from_raw(child), signal)?)
}

fn attend(child: &mut Child, signals: &SignalFd) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let Some(received) = signals.read_signal()? else {
            continue;
        };
        let number = i32::try_from(received.ssi_signo).unwrap_or_default();
        let signal = Signal::try_from(number).ok();
        let Some(signal) = signal.filter(|signal| PASSED_ON.contains(signal)) else {
            continue;
        };
        if received.ssi_code != SI_KERNEL {
            pass_on(signal, child)?;
        }
    }
}

/// The exit code of an ended command, as in shells.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let ended = status.signal().map(|signal| signal + 128);
    let code = status.code().or(ended).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
        assert_eq!(code(ExitStatus::from_raw(0)), 0);
    }
}
