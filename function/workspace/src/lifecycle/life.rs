//! Connects the lifecycle decision with the request and the response.

use std::time::Duration;

use api::condition::STOP_SCHEDULED;
use api::internal::Handled;
use api::lifecycle::{EXTEND_UNTIL, RESUME, STOP, StopReason};
use api::workspace::{GpuDevWorkspaceStatus, Phase};
use function_runtime::composite::Composite;
use function_runtime::response::{Condition, Event};
use function_runtime::validation::Violation;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cause::Cause;
use crate::claim;
use crate::lifecycle::activity::Reported;
use crate::lifecycle::terms::{Bounds, Sources, Terms};
use crate::lifecycle::{Decision, Step, Subject, decide, notice};
use crate::placed::End;
use crate::setup::Installation;

/// Crossplane calls up to a tenth earlier or later than the function asks.
pub(crate) const JITTER_FACTOR: f64 = 0.9;
/// Within this time of a deadline the function asks for one call right after the deadline, which
/// may be up to four seconds late. When a thousand workspaces end in the same minute, more calls
/// before the deadline would delay the calls after it.
const CLOSE_TO_DEADLINE: Duration = Duration::from_secs(20);

/// Time for the launch of a machine, in addition to the longest lifetime of the run. The run begins
/// when the function first sees the machine, and gets its exact end then.
const LAUNCH: SignedDuration = SignedDuration::from_mins(30);

/// The lifecycle of a workspace in one call.
#[derive(Clone, Debug)]
pub struct Life {
    /// The limits from claim and policy.
    pub terms: Terms,
    /// The decision of this call.
    pub decision: Decision,
    extension: Option<Timestamp>,
    stop_deletes_disk: bool,
    told: Option<String>,
    now: Timestamp,
}

/// The observed machine of a workspace.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// How far the setup of the machine is.
    pub installation: Installation,
    /// Whether a machine exists that costs money.
    pub has_machine: bool,
    /// Whether a stop deletes files of the owner.
    pub stop_deletes_disk: bool,
    /// The last report of the agent.
    pub reported: Reported<'a>,
    /// When the run must end because of the owner's budget; none if the budget sets no end.
    pub ends_by: Option<Timestamp>,
}

impl Life {
    /// Decides whether the workspace runs. The violations are those of the claim's lifecycle: the
    /// decision keeps to the bounds nevertheless.
    pub fn of(
        composite: Composite<'_>,
        previous: &GpuDevWorkspaceStatus,
        bounds: Bounds<'_>,
        sight: Sight<'_>,
        now: Timestamp,
    ) -> (Self, Vec<Violation>) {
        let recorded = previous.lifecycle.as_ref();
        let sources = Sources {
            claim: &claim::lifecycle(composite),
            bounds,
            recorded: recorded.and_then(|record| record.limits.as_ref()),
        };
        let (terms, violations) = sources.terms();
        let handled = previous.internal.as_ref().map(|memory| &memory.handled);
        let decision = decide(&Subject {
            terms: &terms,
            extend_until: composite.annotation(EXTEND_UNTIL),
            resume: composite.annotation(RESUME),
            stop: composite.annotation(STOP),
            is_new: previous.phase.is_none(),
            previous: previous.lifecycle.as_ref(),
            handled: handled.unwrap_or(&Handled::default()),
            installation: sight.installation,
            has_machine: sight.has_machine,
            reported: sight.reported,
            ends_by: sight.ends_by,
            now,
        });
        let told = composite.condition_reason(STOP_SCHEDULED);
        let extension = composite.annotation(EXTEND_UNTIL);
        let life = Self {
            extension: extension.and_then(|until| until.parse().ok()),
            stop_deletes_disk: sight.stop_deletes_disk,
            told: told.map(str::to_owned),
            terms,
            decision,
            now,
        };
        (life, violations)
    }

    /// When the current run ends, even if the workspace is in use.
    pub fn end(&self) -> End {
        let record = self.decision.status.as_ref();
        let has_started = record.is_some_and(|record| record.started_at.is_some());
        match self.decision.ends_at {
            Some(at) => End::At(at),
            None if !self.terms.are_known => End::Unknown,
            None if has_started => End::Never,
            None => self.end_of_launch(),
        }
    }

    /// The end of a run that has not started.
    fn end_of_launch(&self) -> End {
        let Some(end) = self.terms.end(self.now, self.extension) else {
            return End::Never;
        };
        let later = |by: SignedDuration| end.saturating_add(by).unwrap_or(Timestamp::MAX);
        End::Unstarted {
            earliest: later(LAUNCH / 2),
            latest: later(LAUNCH),
        }
    }

    /// When the run ends by claim and policy, without the budget; none if nothing ends it. The run
    /// counts from its start, or from `from` if it has not started.
    pub fn ends_at(&self, from: Timestamp) -> Option<Timestamp> {
        let started = self.decision.status.as_ref();
        let started = started.and_then(|record| record.started_at.as_ref());
        let started = started.map_or(from, |Time(started)| *started);
        self.terms.end(started, self.extension)
    }

    /// Why the workspace does not run.
    pub fn cause(&self) -> Cause {
        let record = self.decision.status.as_ref();
        notice::stopped(self.decision.step, record, &self.terms)
    }

    /// The phase once no machine runs.
    pub fn phase(&self) -> Phase {
        match self.decision.step {
            Step::Stop(StopReason::MaxLifetime) | Step::Delete(StopReason::MaxLifetime) => {
                Phase::Expired
            }
            Step::Run | Step::Stop(_) | Step::Delete(_) => Phase::Stopped,
        }
    }

    /// `StopScheduled`, if the workspace can be stopped, and its event, if it is new.
    pub fn notice(&self) -> (Option<Condition>, Option<Event>) {
        let notice = notice::of(&self.decision, &self.terms, self.now);
        match notice.map(|notice| notice.about_disk(self.stop_deletes_disk)) {
            Some(notice) => (Some(notice.condition()), notice.event(self.told.as_deref())),
            None => (None, None),
        }
    }

    /// When the function must decide again.
    pub fn looks_again(&self) -> Option<Duration> {
        self.decision.wakes_at.map(|at| until(at, self.now))
    }
}

/// The time that the function asks Crossplane to wait for a deadline. Crossplane waits up to a
/// tenth shorter or longer (jitter in its composite reconciler), so the function asks for most of
/// the time first, and for the rest in smaller steps.
fn until(at: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
    if left <= CLOSE_TO_DEADLINE {
        left.div_f64(JITTER_FACTOR) + Duration::from_millis(100)
    } else {
        left.mul_f64(JITTER_FACTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test uses the extremes of Crossplane's jitter.
    #[test]
    fn a_deadline_is_met_within_seconds_in_few_calls() {
        for jitter in [0.9, 0.95, 1.0, 1.05, 1.1] {
            let start: Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
            let deadline = start + jiff::SignedDuration::from_mins(10);
            let (mut now, mut calls) = (start, 0);
            while now < deadline {
                let wait = until(deadline, now).mul_f64(jitter);
                assert!(wait >= Duration::from_millis(90), "{wait:?}");
                now += wait;
                calls += 1;
            }
            let late = now.duration_since(deadline);
            assert!(late.as_secs() < 5, "{late} late with a jitter of {jitter}");
            assert!(calls <= 4, "{calls} calls with a jitter of {jitter}");
        }
    }
}
