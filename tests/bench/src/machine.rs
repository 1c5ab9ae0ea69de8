//! The machine on which the benchmark runs: its processors, and whether it is idle.

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::Outcome;

/// The most that other processes may use of the machine, as a share of all its processors' time,
/// without a warning.
const BUSY: f64 = 0.1;
/// How long the benchmark watches the other processes.
const SAMPLE: Duration = Duration::from_secs(1);

/// The processors of the servers and of the client. They differ if this process may use two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processors {
    /// The processor of the server that is measured.
    server: usize,
    /// The processor of the client, which generates the load.
    client: usize,
}

impl Processors {
    /// Chooses the first and the last processor that this process may use.
    pub(crate) fn available() -> Outcome<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0))?;
        let numbers: Vec<usize> = (0..CpuSet::count())
            .filter(|number| allowed.is_set(*number).unwrap_or(false))
            .collect();
        match (numbers.first(), numbers.last()) {
            (Some(&server), Some(&client)) => Ok(Self { server, client }),
            _ => Err("the system names no processor that this process may use".into()),
        }
    }

    /// Moves this thread to the servers' processor. A process that the thread then starts runs
    /// there, too.
    pub(crate) fn to_servers(self) -> Outcome<()> {
        confine(Pid::from_raw(0), &[self.server])
    }

    /// Moves this thread to the client's processor.
    pub(crate) fn to_client(self) -> Outcome<()> {
        confine(Pid::from_raw(0), &[self.client])
    }

    /// Lets all threads of a process run on either processor.
    pub(crate) fn release(self, process: u32) -> Outcome<()> {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let name = thread?.file_name();
            let number = name.to_string_lossy().parse()?;
            confine(Pid::from_raw(number), &[self.server, self.client])?;
        }
        Ok(())
    }
}

fn confine(thread: Pid, processors: &[usize]) -> Outcome<()> {
    let mut set = CpuSet::new();
    for number in processors {
        set.set(*number)?;
    }
    Ok(sched_setaffinity(thread, &set)?)
}

/// Warnings about the machine that make the figures doubtful.
pub(crate) fn warnings(processors: Processors) -> Outcome<Vec<String>> {
    let before = Ticks::read()?;
    thread::sleep(SAMPLE);
    let busy = Ticks::read()?.busy_since(before);
    let mut warnings = Vec::new();
    if busy > BUSY {
        warnings.push(format!(
            "others use {:.0} % of this machine: its figures are worse and less steady than \
             those of an idle one",
            busy * 100.0
        ));
    }
    if processors.server == processors.client {
        warnings.push("there is one processor: servers share it with the load generator".into());
    }
    Ok(warnings)
}

/// The time that the processors were idle since the boot, and all their time, in the kernel's
/// ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    idle: f64,
    all: f64,
}

impl Ticks {
    fn read() -> Outcome<Self> {
        Self::parse(&fs::read_to_string("/proc/stat")?)
            .ok_or_else(|| "/proc/stat: the first line names no times".into())
    }

    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait and others (proc(5)).
    /// A processor that waits for a disk (iowait) counts as idle, because programs can use it.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<f64> = line
            .split_whitespace()
            .map(|time| time.parse().ok())
            .collect::<Option<_>>()?;
        let [_, _, _, idle, waiting, ..] = times.as_slice() else {
            return None;
        };
        Some(Self {
            idle: idle + waiting,
            all: times.iter().sum(),
        })
    }

    fn busy_since(self, before: Self) -> f64 {
        let all = self.all - before.all;
        if all > 0.0 {
            1.0 - (self.idle - before.idle) / all
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_compiles_something_counts_as_busy() {
        let at = |stat| Ticks::parse(stat).unwrap();
        let before = at("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3 4 5\n");
        let idle = at("cpu  101 0 101 996 2 0 0 0 0 0\n");
        let compiling = at("cpu  190 0 110 900 0 0 0 0 0 0\n");
        assert!(idle.busy_since(before) < BUSY);
        assert!(compiling.busy_since(before) > BUSY);
        assert_eq!(Ticks::parse("cpu a b c d e"), None);
    }
}
