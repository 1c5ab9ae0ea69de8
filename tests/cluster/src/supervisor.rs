//! Decides which part to start and what its end means. It has no effects of its own.
//!
//! A part starts when all parts that it depends on are ready. A part that ends stays dead, unless
//! somebody asked for its restart: otherwise a restart would hide the fault from the developer.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::command::tail;
use crate::plan::Part;

/// The number of lines of a dead part's log that are shown.
const LINES: usize = 20;

/// The status of one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartStatus {
    /// The part's name.
    pub name: String,
    /// Its current state.
    pub state: PartState,
    /// When it entered this state.
    pub since: Timestamp,
    /// Its process number inside the cluster's PID namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Where its output goes.
    pub log: PathBuf,
    /// What the last probe saw, as long as the part is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// How it ended, if it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
}

/// The state of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartState {
    /// It waits for parts that it depends on.
    Waiting,
    /// It runs and is not ready yet.
    Starting,
    /// It runs, and a probe has found it ready.
    Ready,
    /// It has ended, or could not be started.
    Dead,
}

impl std::fmt::Display for PartState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Dead => "dead",
        })
    }
}

/// The parts of a plan, each with its status.
#[derive(Debug)]
pub struct Supervisor {
    parts: Vec<(Part, PartStatus)>,
}

impl Supervisor {
    /// Begins with all parts waiting.
    pub fn new(parts: Vec<Part>, now: Timestamp) -> Self {
        let status = |part: &Part| PartStatus {
            name: part.name.clone(),
            state: PartState::Waiting,
            since: now,
            pid: None,
            log: part.log.clone(),
            observed: None,
            exit: None,
        };
        Self {
            parts: parts
                .into_iter()
                .map(|part| (part.clone(), status(&part)))
                .collect(),
        }
    }

    /// The parts that may start now: all parts that they depend on are ready, and no part is dead.
    pub fn due(&self) -> Vec<Part> {
        if self.in_state(PartState::Dead).next().is_some() {
            return Vec::new();
        }
        self.in_state(PartState::Waiting)
            .filter(|part| {
                part.after.iter().all(|name| {
                    self.in_state(PartState::Ready)
                        .any(|ready| ready.name == *name)
                })
            })
            .cloned()
            .collect()
    }

    /// The parts that INIT must probe.
    pub fn starting(&self) -> Vec<Part> {
        self.in_state(PartState::Starting).cloned().collect()
    }

    /// Records that the part runs as process `pid`.
    pub fn started(&mut self, name: &str, pid: i32, now: Timestamp) {
        if let Some(status) = self.status_mut(|status| status.name == name) {
            status.pid = Some(pid);
            status.enter(PartState::Starting, now);
        }
    }

    /// Records that the part could not be started.
    pub fn not_started(&mut self, name: &str, why: String, now: Timestamp) {
        if let Some(status) = self.status_mut(|status| status.name == name) {
            status.exit = Some(why);
            status.enter(PartState::Dead, now);
        }
    }

    /// Records the result of a probe of the part.
    pub fn probed(&mut self, name: &str, seen: Result<(), String>, now: Timestamp) {
        let Some(status) = self.status_mut(|status| status.name == name) else {
            return;
        };
        match seen {
            Ok(()) => {
                status.observed = None;
                status.enter(PartState::Ready, now);
            }
            Err(observed) => status.observed = Some(observed),
        }
    }

    /// Records that process `pid` ended. The supervisor ignores processes that are not parts, such
    /// as an orphan of a container.
    pub fn exited(&mut self, pid: i32, exit: String, now: Timestamp) {
        if let Some(status) = self.status_mut(|status| status.pid == Some(pid)) {
            status.exit = Some(exit);
            status.enter(PartState::Dead, now);
        }
    }

    /// Records that process `pid` ended because somebody asked for a restart of its part.
    pub fn ended_as_asked(&mut self, pid: i32, now: Timestamp) {
        if let Some(status) = self.status_mut(|status| status.pid == Some(pid)) {
            status.pid = None;
            status.enter(PartState::Waiting, now);
        }
    }

    /// The name of the part whose process has this number.
    pub fn part_of(&self, pid: i32) -> Option<&str> {
        let mut statuses = self.parts.iter().map(|(_, status)| status);
        let found = statuses.find(|status| status.pid == Some(pid));
        found.map(|status| status.name.as_str())
    }

    /// Whether the statuses stay as they are until a process ends.
    pub fn at_rest(&self) -> bool {
        self.due().is_empty() && self.in_state(PartState::Starting).next().is_none()
    }

    /// The statuses of all parts.
    pub fn statuses(&self) -> Vec<PartStatus> {
        self.parts
            .iter()
            .map(|(_, status)| status.clone())
            .collect()
    }

    fn in_state(&self, state: PartState) -> impl Iterator<Item = &Part> {
        self.parts
            .iter()
            .filter(move |(_, status)| status.state == state)
            .map(|(part, _)| part)
    }

    fn status_mut(&mut self, which: impl Fn(&PartStatus) -> bool) -> Option<&mut PartStatus> {
        self.parts
            .iter_mut()
            .map(|(_, status)| status)
            .find(|status| status.state != PartState::Dead && which(status))
    }
}

impl PartStatus {
    /// For a dead part: its name, how it ended, and the path and last lines of its log.
    pub fn describe_death(&self) -> String {
        format!(
            "{} ended: {}\n  log: {}, which ends with:\n{}",
            self.name,
            self.exit.as_deref().unwrap_or("it is not known how"),
            self.log.display(),
            tail(&self.log, LINES)
        )
    }

    fn enter(&mut self, state: PartState, now: Timestamp) {
        self.state = state;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Probe;

    fn part(name: &str, after: &[&str]) -> Part {
        Part {
            name: name.to_owned(),
            program: "/bin/true".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            after: after.iter().map(|name| (*name).to_owned()).collect(),
            ready: Probe::Socket {
                path: "/nowhere".into(),
            },
            log: format!("/logs/{name}.log").into(),
        }
    }

    fn supervisor() -> Supervisor {
        let parts = vec![
            part("etcd", &[]),
            part("containerd", &[]),
            part("apiserver", &["etcd"]),
            part("kubelet", &["containerd", "apiserver"]),
        ];
        Supervisor::new(parts, Timestamp::UNIX_EPOCH)
    }

    fn names(parts: &[Part]) -> Vec<&str> {
        parts.iter().map(|part| part.name.as_str()).collect()
    }

    const NOW: Timestamp = Timestamp::MAX;

    #[test]
    fn a_part_does_not_start_before_what_it_needs_is_ready() {
        let mut supervisor = supervisor();
        assert_eq!(names(&supervisor.due()), ["etcd", "containerd"]);
        supervisor.started("etcd", 10, NOW);
        supervisor.started("containerd", 11, NOW);
        assert!(supervisor.due().is_empty());
        supervisor.probed("etcd", Ok(()), NOW);
        assert_eq!(names(&supervisor.due()), ["apiserver"]);
        supervisor.started("apiserver", 12, NOW);
        supervisor.probed("apiserver", Ok(()), NOW);
        assert!(supervisor.due().is_empty(), "kubelet needs containerd too");
        supervisor.probed("containerd", Ok(()), NOW);
        assert_eq!(names(&supervisor.due()), ["kubelet"]);
        assert!(!supervisor.at_rest());
    }

    #[test]
    fn a_dead_part_is_kept_with_its_exit_and_its_log() {
        let mut supervisor = supervisor();
        supervisor.started("etcd", 10, Timestamp::UNIX_EPOCH);
        supervisor.exited(10, "signal 9 (SIGKILL)".to_owned(), NOW);
        let etcd = &supervisor.statuses()[0];
        assert_eq!(etcd.state, PartState::Dead);
        assert_eq!(etcd.exit.as_deref(), Some("signal 9 (SIGKILL)"));
        assert_eq!(etcd.log, PathBuf::from("/logs/etcd.log"));
        assert_eq!(etcd.since, NOW);
    }

    #[test]
    fn nothing_starts_after_a_death_and_nothing_is_started_again() {
        let mut supervisor = supervisor();
        supervisor.started("containerd", 11, NOW);
        supervisor.exited(11, "exit status 1".to_owned(), NOW);
        assert!(supervisor.due().is_empty());
        assert!(supervisor.at_rest());
    }

    #[test]
    fn a_part_whose_restart_is_asked_for_starts_again_when_its_process_has_ended() {
        let mut supervisor = supervisor();
        supervisor.started("etcd", 10, NOW);
        supervisor.probed("etcd", Ok(()), NOW);
        supervisor.started("apiserver", 12, NOW);
        supervisor.probed("apiserver", Ok(()), NOW);
        assert_eq!(supervisor.part_of(12), Some("apiserver"));
        supervisor.ended_as_asked(12, NOW);
        assert_eq!(supervisor.statuses()[2].state, PartState::Waiting);
        assert_eq!(supervisor.part_of(12), None);
        assert!(names(&supervisor.due()).contains(&"apiserver"));
        // The ones that wait for it run already, and are left alone.
        supervisor.started("apiserver", 13, NOW);
        assert_eq!(names(&supervisor.starting()), ["apiserver"]);
    }

    #[test]
    fn a_reused_process_number_does_not_revive_or_kill_anybody() {
        let mut supervisor = supervisor();
        supervisor.started("etcd", 10, NOW);
        supervisor.exited(10, "exit status 1".to_owned(), NOW);
        supervisor.exited(10, "exit status 2".to_owned(), NOW);
        supervisor.exited(99, "exit status 3".to_owned(), NOW);
        let dead: Vec<_> = supervisor
            .statuses()
            .into_iter()
            .filter_map(|status| status.exit)
            .collect();
        assert_eq!(dead, ["exit status 1"]);
    }

    #[test]
    fn a_part_that_is_not_ready_says_what_was_seen() {
        let mut supervisor = supervisor();
        supervisor.started("etcd", 10, NOW);
        supervisor.probed("etcd", Err("connection refused".to_owned()), NOW);
        let etcd = &supervisor.statuses()[0];
        assert_eq!(etcd.state, PartState::Starting);
        assert_eq!(etcd.observed.as_deref(), Some("connection refused"));
        supervisor.not_started("apiserver", "no such file".to_owned(), NOW);
        assert_eq!(supervisor.statuses()[2].state, PartState::Dead);
    }
}
