//! Decides whether a workspace runs now. The decision follows from the claim, the policy, the last
//! status, the agent's report and the time.
//!
//! Expiry and idle stops are recorded in status. They change no field of the claim, so a tool that
//! compares claims with git sees no difference. A run begins when the function first sees its
//! machine. It ends for one of four reasons: the claim says `Stopped`, the owner annotates the claim,
//! the run reaches its longest lifetime, or the owner has not used the workspace for too long. After
//! the last three, the workspace stays stopped until the owner asks for another run.

pub mod activity;
pub mod life;
pub mod notice;
pub mod terms;

use api::internal::Handled;
use api::lifecycle::{
    ActivityStatus, ExtensionStatus, LifecycleStatus, StopReason, WorkspaceState,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::setup::Installation;

use activity::{Reading, Reported};
use terms::{Terms, after};

/// How long before a stop the owner is warned: first and last warning.
pub const WARNINGS: [SignedDuration; 2] =
    [SignedDuration::from_mins(30), SignedDuration::from_mins(5)];

/// Clock skew allowed between the provider and this function. An instance that disappears less than
/// this before its deadline was stopped by the provider, not lost.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// The input of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The limits from claim and policy.
    pub terms: &'a Terms,
    /// The claim's annotation [`api::lifecycle::EXTEND_UNTIL`].
    pub extend_until: Option<&'a str>,
    /// The claim's annotation [`api::lifecycle::RESUME`].
    pub resume: Option<&'a str>,
    /// The claim's annotation [`api::lifecycle::STOP`].
    pub stop: Option<&'a str>,
    /// Whether no earlier call decided about this workspace.
    pub is_new: bool,
    /// The record that the last call wrote to status.
    pub previous: Option<&'a LifecycleStatus>,
    /// The annotations that earlier calls have handled.
    pub handled: &'a Handled,
    /// How far the setup of the machine is.
    pub installation: Installation,
    /// Whether a machine exists that costs money.
    pub has_machine: bool,
    /// The last report of the agent.
    pub reported: Reported<'a>,
    /// When the run must end because of the owner's budget; none if the budget sets no end.
    pub ends_by: Option<Timestamp>,
    /// The time of the decision.
    pub now: Timestamp,
}

/// The decision about the lifecycle of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the workspace runs.
    pub step: Step,
    /// The record for status; none for a workspace that has no limits and has never been stopped.
    pub status: Option<LifecycleStatus>,
    /// The annotations that are handled after this call.
    pub handled: Handled,
    /// The use of the workspace while it runs.
    pub activity: Option<ActivityStatus>,
    /// Messages about annotations that have no effect.
    pub notices: Vec<String>,
    /// When the function must decide again at the latest.
    pub wakes_at: Option<Timestamp>,
    /// When the run ends even if the workspace is in use; none if it does not run or has no end.
    pub ends_at: Option<Timestamp>,
}

/// Whether a workspace runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The workspace runs.
    Run,
    /// The workspace does not run. Its home and its other remaining resources are kept.
    Stop(StopReason),
    /// The workspace has been stopped for so long that its remaining resources are deleted, within
    /// the limits of the policy.
    Delete(StopReason),
}

/// Decides whether the workspace runs, and what status records.
pub fn decide(subject: &Subject<'_>) -> Decision {
    let mut notices = Vec::new();
    let extension = extension(subject, &mut notices);
    let previous = subject.previous.cloned().unwrap_or_default();
    let mut decision = match stopped(subject, &previous, extension) {
        Some(because) => subject.at_rest(&previous, because),
        None => subject.running(begun(subject, previous), extension),
    };
    decision.notices = notices;
    decision
}

/// Why the workspace stays stopped; none if it is to run.
fn stopped(
    subject: &Subject<'_>,
    previous: &LifecycleStatus,
    extension: Option<Timestamp>,
) -> Option<StopReason> {
    if subject.terms.state == WorkspaceState::Stopped {
        return Some(StopReason::State);
    }
    let Some(because) = previous.stopped_because else {
        return subject.is_asked_to_stop().then_some(StopReason::Requested);
    };
    let is_asked = subject.is_asked_to_resume();
    let goes_on = match because {
        // The claim no longer says `state: Stopped`.
        StopReason::State => true,
        StopReason::Idle | StopReason::Requested => is_asked,
        // The claim, the policy or an extension moved the end into the future.
        StopReason::MaxLifetime => {
            let started = previous.started_at.as_ref().map(|Time(started)| *started);
            let end = started.and_then(|started| subject.end_of_life(started, extension));
            is_asked || end.is_none_or(|(end, _)| !subject.is_over(end))
        }
    };
    (!goes_on).then_some(because)
}

/// The record of a run that continues or begins.
fn begun(subject: &Subject<'_>, previous: LifecycleStatus) -> LifecycleStatus {
    let is_asked = subject.is_asked_to_resume();
    let goes_on = match previous.stopped_because {
        None => true,
        Some(StopReason::MaxLifetime) => !is_asked,
        Some(StopReason::State | StopReason::Idle | StopReason::Requested) => false,
    };
    LifecycleStatus {
        started_at: previous.started_at.filter(|_| goes_on),
        ready_at: previous.ready_at.filter(|_| goes_on),
        ..LifecycleStatus::default()
    }
}

impl Subject<'_> {
    fn running(&self, record: LifecycleStatus, extension: Option<Timestamp>) -> Decision {
        let now = Time(whole_seconds(self.now));
        let started_at = record
            .started_at
            .clone()
            .or(self.has_machine.then(|| now.clone()));
        let Some(Time(since)) = started_at.clone() else {
            return self.decided(Step::Run, record, None, None);
        };
        let ready_at = match self.installation {
            Installation::Unknown => record.ready_at.clone(),
            Installation::Going => None,
            Installation::Done => record.ready_at.clone().or(Some(now)),
        };
        let usable_since = ready_at.as_ref().map_or(since, |Time(at)| since.max(*at));
        let reading = match self.installation {
            Installation::Going => activity::installing(),
            _ => activity::read(self.reported, self.terms, usable_since, self.now),
        };
        let end = self.end_of_life(since, extension);
        let record = LifecycleStatus {
            started_at,
            ready_at,
            ..record
        };
        if end.is_some_and(|(end, _)| self.is_over(end)) {
            return self.at_rest(&record, StopReason::MaxLifetime);
        }
        if reading.is_eligible {
            return self.at_rest(&record, StopReason::Idle);
        }
        let idle = reading.status.eligible_at.as_ref();
        let idle = idle.map(|Time(eligible)| (*eligible, StopReason::Idle));
        let stop = end.into_iter().chain(idle).min_by_key(|(at, _)| *at);
        let record = LifecycleStatus {
            extension: self.extension(since, extension),
            stops_at: stop.map(|(at, _)| Time(at)),
            stops_because: stop.map(|(_, because)| because),
            ..record
        };
        let ends_at = end.map(|(end, _)| end);
        let stop = stop.map(|(at, _)| at);
        Decision {
            ends_at,
            ..self.decided(Step::Run, record, Some(&reading), stop)
        }
    }

    /// The decision for a workspace that does not run, since this call or an earlier one.
    fn at_rest(&self, previous: &LifecycleStatus, because: StopReason) -> Decision {
        let was_stopped = previous.stopped_because.is_some();
        let now = Time(whole_seconds(self.now));
        let stopped_at = previous
            .stopped_at
            .clone()
            .filter(|_| was_stopped)
            .unwrap_or(now);
        let Time(since) = stopped_at;
        let limit = self.terms.delete_after_stopped.as_ref();
        let deletes_at = limit.map(|limit| after(since, limit));
        let is_over = previous.deleted_at.is_some() || deletes_at.is_some_and(|at| at <= self.now);
        let record = LifecycleStatus {
            started_at: previous.started_at.clone(),
            ready_at: None,
            stops_at: None,
            stops_because: None,
            stopped_at: Some(stopped_at),
            stopped_because: Some(because),
            deletes_at: deletes_at.filter(|_| !is_over).map(Time),
            deleted_at: match &previous.deleted_at {
                Some(at) => Some(at.clone()),
                None => is_over.then(|| Time(whole_seconds(self.now))),
            },
            extension: None,
            limits: None,
        };
        let step = if is_over {
            Step::Delete(because)
        } else {
            Step::Stop(because)
        };
        let mut decision = self.decided(step, record, None, deletes_at.filter(|_| !is_over));
        decision.activity = None;
        if was_stopped {
            // The value of the annotation at the time of the stop does not start the workspace
            // again. A new value does, as soon as the workspace may run.
            decision.handled.resume.clone_from(&self.handled.resume);
        }
        decision
    }

    fn decided(
        &self,
        step: Step,
        record: LifecycleStatus,
        reading: Option<&Reading>,
        deadline: Option<Timestamp>,
    ) -> Decision {
        let warnings = deadline.into_iter().flat_map(|at| {
            let ahead = WARNINGS.map(|ahead| at.saturating_sub(ahead).unwrap_or(Timestamp::MIN));
            ahead.into_iter().chain([at])
        });
        let stale = reading.and_then(|reading| reading.stale_at);
        let wakes_at = warnings.chain(stale).filter(|at| *at > self.now).min();
        let is_told = self.terms.have_limits()
            || self.previous.is_some()
            || self.stop.is_some()
            || step != Step::Run;
        let asks_activity =
            self.terms.stop_after_idle.is_some() || !matches!(self.reported, Reported::NoAgent(_));
        Decision {
            step,
            status: is_told.then(|| LifecycleStatus {
                limits: self.terms.limits(),
                ..record
            }),
            handled: if is_told {
                self.seen()
            } else {
                Handled::default()
            },
            activity: reading
                .filter(|_| asks_activity)
                .map(|reading| reading.status.clone()),
            notices: Vec::new(),
            wakes_at: wakes_at.filter(|_| is_told || asks_activity),
            ends_at: None,
        }
    }

    fn is_asked_to_stop(&self) -> bool {
        !self.is_new && is_unhandled(self.stop, self.handled.stop.as_deref())
    }

    fn is_asked_to_resume(&self) -> bool {
        is_unhandled(self.resume, self.handled.resume.as_deref())
    }

    /// The annotations of this call, or else those that earlier calls have handled.
    fn seen(&self) -> Handled {
        let or = |own: Option<&str>, before: &Option<String>| {
            own.map(str::to_owned).or_else(|| before.clone())
        };
        Handled {
            resume: or(self.resume, &self.handled.resume),
            stop: or(self.stop, &self.handled.stop),
        }
    }

    /// Whether a run with this end is over.
    fn is_over(&self, end: Timestamp) -> bool {
        let ahead = if self.has_machine {
            SignedDuration::ZERO
        } else {
            SKEW
        };
        end.duration_since(self.now) <= ahead
    }

    /// What an extension asked for, and what is granted; none without an extension.
    fn extension(
        &self,
        started: Timestamp,
        extension: Option<Timestamp>,
    ) -> Option<ExtensionStatus> {
        let asked = whole_seconds(self.extend_until?.parse().ok()?);
        let of = |extension| self.end_of_life(started, extension).map(|(end, _)| end);
        let granted = extension.and_then(|_| of(extension));
        let granted = granted.filter(|end| Some(*end) != of(None));
        let allowed = extension.and_then(|_| self.terms.end(started, extension));
        let message = match granted {
            Some(end) if end >= asked => None,
            Some(end) if allowed.is_some_and(|allowed| end < allowed) => {
                Some("the owner's budget ends the run earlier")
            }
            Some(_) => Some("the policy's lifecycle.maxExtension allows no later end"),
            None => Some("it has no effect: the run ends later anyway, or may not be extended"),
        };
        Some(ExtensionStatus {
            asked_until: Time(asked),
            granted_until: granted.map(Time),
            message: message.map(str::to_owned),
        })
    }

    /// When a run ends at the latest, and why.
    fn end_of_life(
        &self,
        started: Timestamp,
        extension: Option<Timestamp>,
    ) -> Option<(Timestamp, StopReason)> {
        let end = self.terms.end(started, extension)?;
        let end = self.ends_by.map_or(end, |by| end.min(by));
        Some((end, StopReason::MaxLifetime))
    }
}

/// Whether the owner has set an annotation to a value that the function has not handled.
fn is_unhandled(annotation: Option<&str>, handled: Option<&str>) -> bool {
    annotation.is_some() && annotation != handled
}

/// The time in the claim's annotation [`api::lifecycle::EXTEND_UNTIL`].
fn extension(subject: &Subject<'_>, notices: &mut Vec<String>) -> Option<Timestamp> {
    let asked = subject.extend_until?;
    let problem = match asked.parse::<Timestamp>() {
        Err(_) => "must be a time, for example 2026-11-24T18:00:00Z".to_owned(),
        Ok(_) if subject.terms.max_lifetime.is_none() => {
            "has no effect: nothing ends this workspace's run".to_owned()
        }
        Ok(_) if subject.terms.max_extension.is_none() => {
            "has no effect: the policy has no input.lifecycle.maxExtension".to_owned()
        }
        Ok(until) => return Some(until),
    };
    let annotation = api::lifecycle::EXTEND_UNTIL;
    notices.push(format!("metadata.annotations[{annotation}]: {problem}"));
    None
}

/// Cuts off fractions of a second: times in Kubernetes have none.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
