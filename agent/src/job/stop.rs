//! `job stop`.

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::arguments::Stop;
use crate::job::folder::{Found, Jobs, State};
use crate::job::supervisor::ticks;

/// The time between two looks at the job.
const LOOK: Duration = Duration::from_millis(50);
/// How long a killed job may take to end: the supervisor keeps the rest of the output first.
const AFTER_KILL: Duration = Duration::from_secs(10);

/// Ends a job: by SIGTERM, and after the grace by SIGKILL.
pub(super) fn stop(jobs: &Jobs, wish: &Stop) -> Result<ExitCode, String> {
    let job = jobs.find(Some(&wish.id))?;
    let steps = [
        (Signal::SIGTERM, Duration::from_secs(wish.grace)),
        (Signal::SIGKILL, AFTER_KILL),
    ];
    for (signal, patience) in steps {
        if !is_running(&job)? {
            return Ok(ExitCode::SUCCESS);
        }
        send(&job, signal)?;
        let deadline = Instant::now() + patience;
        while is_running(&job)? && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
    }
    if is_running(&job)? {
        return Err(format!(
            "a process that left the group of job {} still runs",
            job.id
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn is_running(job: &Found) -> Result<bool, String> {
    let state = job
        .state()
        .map_err(|error| format!("job {}: {error}", job.id))?;
    Ok(state == State::Running)
}

/// Signals the group of the job, unless the kernel has given its number to another process.
fn send(job: &Found, signal: Signal) -> Result<(), String> {
    let group = job.record.group;
    if ticks(Path::new("/proc"), group) != Some(job.record.ticks) {
        return Ok(());
    }
    match killpg(Pid::from_raw(group), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(format!("job {}: {error}", job.id)),
    }
}
