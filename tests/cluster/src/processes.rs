//! Processes of the host. A later process with the same number is not mistaken for the earlier one.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process: its number and its start time. Together these two never repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The number.
    pub pid: i32,
    /// The start time, in clock ticks since the machine started.
    pub started: u64,
}

impl Identity {
    /// This process, with the number that /proc shows. In a PID namespace under the host's /proc,
    /// this is the number on the host; the kernel's getpid would return the number inside.
    pub fn of_this_process() -> io::Result<Self> {
        let link = fs::read_link("/proc/self")?;
        let pid = link
            .to_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| io::Error::other("/proc/self does not name a process"))?;
        Self::of(pid).ok_or_else(|| io::Error::other("this process is not in /proc"))
    }

    /// The process with that number, unless it has ended.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Stat::of(pid)?;
        (stat.state != 'Z').then_some(Self {
            pid,
            started: stat.started,
        })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Kills it, if it still runs.
    pub fn kill(self) -> Result<(), Errno> {
        if !self.is_alive() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.pid), Signal::SIGKILL) {
            Err(Errno::ESRCH) => Ok(()),
            result => result,
        }
    }
}

/// The children of process `parent`: each number on the host, with the number in the child's own
/// PID namespace.
pub fn children(parent: i32) -> Vec<(i32, i32)> {
    let Ok(listing) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    listing
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let inside = inside_number(&status, parent)?;
            Some((pid, inside))
        })
        .collect()
}

/// Reads /proc/PID/status. Returns the innermost number of the process if it is a child of
/// `parent`.
fn inside_number(status: &str, parent: i32) -> Option<i32> {
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    if field("PPid")?.trim().parse::<i32>().ok()? != parent {
        return None;
    }
    field("NSpid")?.split_whitespace().last()?.parse().ok()
}

/// The needed fields of /proc/PID/stat.
struct Stat {
    state: char,
    started: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// In `proc_pid_stat(5)` the state is field 3 and the start time field 22. Field 2 is a name in
    /// parentheses, which may itself contain spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let started = fields.nth(18)?.parse().ok()?;
        Some(Self { state, started })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 1 2";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.state, 'S');
        assert_eq!(stat.started, 777);
    }

    #[test]
    fn another_process_with_the_same_number_is_not_taken_for_it() {
        let this = Identity::of_this_process().unwrap();
        assert!(this.is_alive());
        let earlier = Identity {
            started: this.started + 1,
            ..this
        };
        assert!(!earlier.is_alive());
        // This call would kill the test if `earlier` were mistaken for this process.
        earlier.kill().unwrap();
    }

    #[test]
    fn a_part_is_found_on_the_host_by_the_number_it_has_inside() {
        let status = "Name:\tetcd\nPPid:\t500\nNSpid:\t612\t7\n";
        assert_eq!(inside_number(status, 500), Some(7));
        assert_eq!(inside_number(status, 501), None);
    }
}
