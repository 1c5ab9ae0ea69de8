//! Whether a workspace runs now: a decision from claim, policy, what its last status
//! recorded, what its agent reports, and the time.
//!
//! Git holds the policy, and status what became of it: expiry and idle stops change no
//! field that a person wrote, so nothing that compares claims with git is ever at odds
//! with them. A run begins with the first sight of its machine. It ends at the claim's
//! word, after the longest lifetime, or when nobody used it for long enough; the last
//! two last until somebody asks for another run.

pub mod activity;
pub mod life;
pub mod notice;
pub mod terms;

use api::lifecycle::{ActivityStatus, LifecycleStatus, StopReason, WorkspaceState};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use activity::{Reading, Reported};
use terms::{Terms, after};

/// How long before a stop people are told, first and last.
pub const WARNINGS: [SignedDuration; 2] =
    [SignedDuration::from_mins(30), SignedDuration::from_mins(5)];

/// How far the clock of whoever ends machines on time may be ahead of this one: a machine
/// that is gone so shortly before its end was not lost.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// What a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Claim and policy.
    pub terms: &'a Terms,
    /// The claim's annotation [`api::lifecycle::EXTEND_UNTIL`].
    pub extend_until: Option<&'a str>,
    /// The claim's annotation [`api::lifecycle::RESUME`].
    pub resume: Option<&'a str>,
    /// What the last call recorded.
    pub previous: Option<&'a LifecycleStatus>,
    /// Whether there is a machine that costs money.
    pub has_machine: bool,
    /// What its agent said.
    pub reported: Reported<'a>,
    /// Until when the owner's budget lets the run last, where there is one.
    pub ends_by: Option<Timestamp>,
    /// When the decision is made.
    pub now: Timestamp,
}

/// What becomes of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it runs.
    pub step: Step,
    /// What is recorded; none of a workspace without limits that was never stopped.
    pub status: Option<LifecycleStatus>,
    /// Who uses it, while it runs.
    pub activity: Option<ActivityStatus>,
    /// What annotations say that does not count.
    pub notices: Vec<String>,
    /// When another decision may follow, at the latest.
    pub wakes_at: Option<Timestamp>,
    /// When the run ends, whoever uses it; none where it does not run, or for ever.
    pub ends_at: Option<Timestamp>,
}

/// Whether a workspace runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It runs.
    Run,
    /// It does not; what it keeps is kept.
    Stop(StopReason),
    /// It has been stopped for so long that what is left of it goes, as far as the
    /// policy lets it.
    Delete(StopReason),
}

/// Decides.
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

/// Why it stays stopped; none where it is to run.
fn stopped(
    subject: &Subject<'_>,
    previous: &LifecycleStatus,
    extension: Option<Timestamp>,
) -> Option<StopReason> {
    if subject.terms.state == WorkspaceState::Stopped {
        return Some(StopReason::State);
    }
    let because = previous.stopped_because?;
    let is_asked = subject.resume.is_some() && subject.resume != previous.resume.as_deref();
    let goes_on = match because {
        // The claim says now that it runs.
        StopReason::State => true,
        StopReason::Idle => is_asked,
        // An end that was moved into the future is none.
        StopReason::MaxLifetime => {
            let started = previous.started_at.as_ref().map(|Time(started)| *started);
            let end = started.and_then(|started| subject.end_of_life(started, extension));
            is_asked || end.is_none_or(|(end, _)| !subject.is_over(end))
        }
    };
    (!goes_on).then_some(because)
}

/// The record of a run that goes on, or of one that begins.
fn begun(subject: &Subject<'_>, previous: LifecycleStatus) -> LifecycleStatus {
    let is_asked = subject.resume.is_some() && subject.resume != previous.resume.as_deref();
    let goes_on = match previous.stopped_because {
        None => true,
        Some(StopReason::MaxLifetime) => !is_asked,
        Some(StopReason::State | StopReason::Idle) => false,
    };
    LifecycleStatus {
        started_at: previous.started_at.filter(|_| goes_on),
        resume: subject.resume.map(str::to_owned).or(previous.resume),
        ..LifecycleStatus::default()
    }
}

impl Subject<'_> {
    fn running(&self, record: LifecycleStatus, extension: Option<Timestamp>) -> Decision {
        let now = Time(whole_seconds(self.now));
        let started_at = record
            .started_at
            .clone()
            .or(self.has_machine.then_some(now));
        let Some(Time(since)) = started_at.clone() else {
            return self.decided(Step::Run, record, None, None);
        };
        let reading = activity::read(self.reported, self.terms, since, self.now);
        let end = self.end_of_life(since, extension);
        let record = LifecycleStatus {
            started_at,
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

    /// It does not run, since now or since the last call.
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
            stops_at: None,
            stops_because: None,
            stopped_at: Some(stopped_at),
            stopped_because: Some(because),
            deletes_at: deletes_at.filter(|_| !is_over).map(Time),
            deleted_at: match &previous.deleted_at {
                Some(at) => Some(at.clone()),
                None => is_over.then(|| Time(whole_seconds(self.now))),
            },
            // What is there when it stops asks for nothing.
            resume: match (was_stopped, &previous.resume) {
                (true, seen) => seen.clone(),
                (false, seen) => self.resume.map(str::to_owned).or_else(|| seen.clone()),
            },
        };
        let step = if is_over {
            Step::Delete(because)
        } else {
            Step::Stop(because)
        };
        let mut decision = self.decided(step, record, None, deletes_at.filter(|_| !is_over));
        decision.activity = None;
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
        let is_told = self.terms.have_limits() || self.previous.is_some() || step != Step::Run;
        let asks_activity =
            self.terms.stop_after_idle.is_some() || !matches!(self.reported, Reported::NoAgent(_));
        Decision {
            step,
            status: is_told.then_some(record),
            activity: reading
                .filter(|_| asks_activity)
                .map(|reading| reading.status.clone()),
            notices: Vec::new(),
            wakes_at: wakes_at.filter(|_| is_told || asks_activity),
            ends_at: None,
        }
    }

    /// Whether a run that ends then is over.
    fn is_over(&self, end: Timestamp) -> bool {
        let ahead = if self.has_machine {
            SignedDuration::ZERO
        } else {
            SKEW
        };
        end.duration_since(self.now) <= ahead
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

/// The time that the claim's annotation asks for.
fn extension(subject: &Subject<'_>, notices: &mut Vec<String>) -> Option<Timestamp> {
    let asked = subject.extend_until?;
    let problem = match asked.parse::<Timestamp>() {
        Err(_) => "must be a time, for example 2026-11-24T18:00:00Z".to_owned(),
        Ok(_) if subject.terms.max_lifetime.is_none() => {
            "has no effect: nothing ends this workspace's run".to_owned()
        }
        Ok(_) if subject.terms.max_extension.is_zero() => {
            "has no effect: the policy has no input.lifecycle.maxExtension".to_owned()
        }
        Ok(until) => return Some(until),
    };
    let annotation = api::lifecycle::EXTEND_UNTIL;
    notices.push(format!("metadata.annotations[{annotation}]: {problem}"));
    None
}

/// Kubernetes' times have no fractions.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
