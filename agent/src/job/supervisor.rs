//! The supervisor of a job: a process in a session of its own.

use std::io::{self, PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, dup2_stderr, dup2_stdout, getppid, setsid};

use crate::arguments::{Exec, Supervise};
use crate::job::folder::{self, Record};
use crate::job::output::{self, Output};
use crate::jobs;
use crate::places::Places;
use crate::registration::Registration;
use crate::run;

/// What the supervisor writes when the command runs.
pub(super) const STARTED: &str = "started";
/// The exit code if the command does not exist, as in shells.
const NOT_FOUND: u8 = 127;
/// How long the output may go on after the command's end. Processes that left the job's group may hold
/// it open.
const REST: Duration = Duration::from_secs(2);

/// The signals that end a job.
const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// Runs a command as a job until it ends.
pub(super) fn supervise(places: &Places, wish: &Supervise) -> Result<ExitCode, String> {
    match begin(places, wish) {
        Err(problem) => {
            // `job start` reads it.
            print!("{problem}");
            Ok(ExitCode::FAILURE)
        }
        Ok(job) => job.attend().map_err(|error| error.to_string()),
    }
}

/// A job that runs.
struct Running {
    child: Child,
    signals: SignalFd,
    /// The end of the output.
    output: Receiver<()>,
    result: std::fs::File,
    registration: Registration,
    /// Whether the machine or the pod ends, and the job with it. `job stop` signals the command only.
    was_told_to_end: bool,
}

fn begin(places: &Places, wish: &Supervise) -> Result<Running, String> {
    let told = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    // A session without a terminal: nothing of the login's end reaches the job.
    setsid().map_err(|error| told("setsid", &error))?;
    let now = Timestamp::now();
    // The agent counts what is locked in its own folder.
    let folder = if wish.no_use {
        wish.folder.clone()
    } else {
        places.jobs()
    };
    let registered = jobs::register(&folder, &wish.name, now);
    let registration = registered.map_err(|error| {
        format!(
            "cannot register the job in {}: {error}; does the agent run here?",
            folder.display()
        )
    })?;
    registration
        .inherit()
        .map_err(|error| told("the job's lock", &error))?;
    let disk = |error: io::Error| told(&wish.folder.display().to_string(), &error);
    let result = folder::reserve_result(&wish.folder).map_err(disk)?;
    let output = Output::create(&wish.folder, output::SIZE).map_err(disk)?;
    let (reader, child) = spawn(wish).map_err(|error| told("the command", &error))?;
    let signals: SigSet = ENDING.into_iter().chain([Signal::SIGCHLD]).collect();
    signals
        .thread_block()
        .map_err(|error| told("signals", &error))?;
    let signals = SignalFd::new(&signals).map_err(|error| told("signals", &error))?;
    let group = i32::try_from(child.id()).map_err(|error| told("the command", &error))?;
    let record = Record {
        name: wish.name.clone(),
        command: wish
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        started: now,
        lock: registration.path().to_owned(),
        group,
        ticks: ticks(Path::new("/proc"), group).unwrap_or_default(),
    };
    let running = Running {
        child,
        signals,
        output: keep(reader, output),
        result,
        registration,
        was_told_to_end: false,
    };
    if let Err(error) = folder::record(&wish.folder, &record) {
        running.kill();
        return Err(disk(error));
    }
    started().map_err(|error| told("standard output", &error))?;
    Ok(running)
}

/// Starts the command, with both streams in one pipe.
fn spawn(wish: &Supervise) -> io::Result<(PipeReader, Child)> {
    let (reader, writer) = io::pipe()?;
    let child = Command::new(std::env::current_exe()?)
        .args(["job", "exec", &std::process::id().to_string(), "--"])
        .args(&wish.command)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    Ok((reader, child))
}

/// Tells `job start` that the command runs, and lets go of its streams.
fn started() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(STARTED.as_bytes())?;
    out.flush()?;
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// Keeps the output until its end.
fn keep(mut reader: PipeReader, mut output: Output) -> Receiver<()> {
    let (ended, end) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => output.write(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // The supervisor may have ended its wait.
        let _ = ended.send(());
    });
    end
}

impl Running {
    /// Waits for the end of the command, and writes its exit code. What is left of its group ends with
    /// it, so nothing runs that is not registered.
    fn attend(mut self) -> io::Result<ExitCode> {
        let status = self.ended()?;
        self.kill();
        // Output of processes that left the group is not waited for.
        let _ = self.output.recv_timeout(REST);
        let code = run::code(status);
        let written = if self.was_told_to_end {
            folder::write_lost(&self.result)
        } else {
            folder::write_result(&self.result, code, Timestamp::now())
        };
        drop(self.registration);
        written.map(|()| ExitCode::SUCCESS)
    }

    fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            // SIGCHLD is read here, too. A command that ended before it was blocked has been seen above.
            let received = self.signals.read_signal()?;
            let number = received.and_then(|one| i32::try_from(one.ssi_signo).ok());
            let signal = number.and_then(|number| Signal::try_from(number).ok());
            if let Some(signal) = signal.filter(|signal| ENDING.contains(signal)) {
                self.was_told_to_end = true;
                self.signal(signal);
            }
        }
    }

    /// Sends a signal to the job's group. The group may have ended meanwhile.
    fn signal(&self, signal: Signal) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }

    fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }
}

/// Becomes a command. The supervisor reads the command's output, so the kernel ends the command when the
/// supervisor ends (`prctl(2)`, `PR_SET_PDEATHSIG`).
pub(super) fn exec(wish: &Exec) -> Result<ExitCode, String> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| error.to_string())?;
    // It may have ended before the kernel knew the signal.
    if getppid() != Pid::from_raw(wish.supervisor) {
        return Err("the supervisor has ended".to_owned());
    }
    SigSet::empty()
        .thread_set_mask()
        .map_err(|error| error.to_string())?;
    let [program, arguments @ ..] = wish.command.as_slice() else {
        return Err("name a command".to_owned());
    };
    let error = Command::new(program).args(arguments).exec();
    eprintln!("gpu-workspace-agent: {}: {error}", program.display());
    Ok(ExitCode::from(NOT_FOUND))
}

/// When a process started; none if it does not exist.
pub(super) fn ticks(proc: &Path, process: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(proc.join(process.to_string()).join("stat")).ok()?;
    // The name of the program is in parentheses, and may have any character.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}
