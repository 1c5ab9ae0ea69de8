//! Messages about a stop, before and after it.

use api::condition::STOP_SCHEDULED;
use api::lifecycle::{EXTEND_UNTIL, LifecycleStatus, RESUME, STOP, StopReason};
use function_runtime::object::Status;
use function_runtime::response::{Condition, Event, Severity};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cause::{Cause, Reason};
use crate::lifecycle::terms::{Length, Terms, after};
use crate::lifecycle::{Decision, Step, WARNINGS};

const DELETES_DISK: &str = "; the stop deletes the machine's disk with all files on it, because the \
                            workspace has no home";

/// The message and the condition about the next stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    when: When,
    message: String,
}

/// When a workspace stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// The workspace does not run.
    Stopped,
    /// No stop is known.
    NotScheduled,
    /// The workspace stops in more than half an hour.
    NotSoon,
    /// The workspace stops within the first time of [`WARNINGS`].
    Within30Minutes,
    /// The workspace stops within the last time of [`WARNINGS`].
    Within5Minutes,
}

impl When {
    fn reason(self) -> &'static str {
        match self {
            Self::Stopped => "Stopped",
            Self::NotScheduled => "NotScheduled",
            Self::NotSoon => "NotSoon",
            Self::Within30Minutes => "StopsWithin30Minutes",
            Self::Within5Minutes => "StopsWithin5Minutes",
        }
    }

    fn is_soon(self) -> bool {
        matches!(self, Self::Within30Minutes | Self::Within5Minutes)
    }
}

/// The notice about the next stop; none for a workspace that has no limits and has never been
/// stopped.
pub fn of(decision: &Decision, terms: &Terms, now: Timestamp) -> Option<Notice> {
    let record = decision.status.as_ref()?;
    if decision.step != Step::Run {
        return Some(Notice {
            when: When::Stopped,
            message: stopped(decision.step, Some(record), terms).message,
        });
    }
    let (Some(Time(at)), Some(because)) = (&record.stops_at, record.stops_because) else {
        return Some(Notice {
            when: When::NotScheduled,
            message: "no stop is scheduled".to_owned(),
        });
    };
    let left = at.duration_since(now);
    let [first, last] = WARNINGS;
    let when = if left <= last {
        When::Within5Minutes
    } else if left <= first {
        When::Within30Minutes
    } else {
        When::NotSoon
    };
    Some(Notice {
        when,
        message: announcement(*at, because, record, terms),
    })
}

impl Notice {
    /// Adds what a scheduled stop deletes.
    #[must_use]
    pub fn about_disk(mut self, is_deleted: bool) -> Self {
        let is_scheduled = !matches!(self.when, When::Stopped | When::NotScheduled);
        if is_deleted && is_scheduled {
            self.message.push_str(DELETES_DISK);
        }
        self
    }

    /// `StopScheduled`. With status `True` the workspace stops within half an hour.
    pub fn condition(&self) -> Condition {
        Condition {
            type_: STOP_SCHEDULED,
            status: if self.when.is_soon() {
                Status::True
            } else {
                Status::False
            },
            reason: self.when.reason().to_owned(),
            message: self.message.clone(),
        }
    }

    /// The event of a stop within half an hour. `told` is the reason that the condition had in the
    /// last call, so each event is sent once.
    pub fn event(&self, told: Option<&str>) -> Option<Event> {
        let reason = self.when.reason();
        let is_news = self.when.is_soon() && told != Some(reason);
        is_news.then(|| Event {
            severity: Severity::Warning,
            reason,
            message: self.message.clone(),
        })
    }
}

/// Why a workspace does not run, and how its owner starts it again.
pub fn stopped(step: Step, record: Option<&LifecycleStatus>, terms: &Terms) -> Cause {
    let because = match step {
        Step::Run | Step::Stop(StopReason::State) | Step::Delete(StopReason::State) => {
            "stopped, as spec.parameters.lifecycle.state says".to_owned()
        }
        Step::Stop(StopReason::Idle) | Step::Delete(StopReason::Idle) => format!(
            "stopped, since nobody used it for {}: annotate the claim with {RESUME}=\"$(date)\" \
             to start it",
            text(terms.stop_after_idle.as_ref())
        ),
        Step::Stop(StopReason::MaxLifetime) | Step::Delete(StopReason::MaxLifetime) => format!(
            "stopped, since it ran for {}: annotate the claim with {RESUME}=\"$(date)\" to start it",
            text(terms.max_lifetime.as_ref())
        ),
        Step::Stop(StopReason::Requested) | Step::Delete(StopReason::Requested) => format!(
            "stopped, as the annotation {STOP} asked: annotate the claim with \
             {RESUME}=\"$(date)\" to start it"
        ),
    };
    let next = match (step, record.and_then(|record| record.deletes_at.as_ref())) {
        (Step::Delete(_), _) => {
            "; its remaining resources were deleted, as deleteAfterStopped and the policy say"
                .to_owned()
        }
        (_, Some(_)) => {
            "; its remaining resources are deleted at status.lifecycle.deletesAt".to_owned()
        }
        (_, None) => String::new(),
    };
    let reason = match step {
        Step::Run
        | Step::Stop(StopReason::State | StopReason::Requested)
        | Step::Delete(StopReason::State | StopReason::Requested) => Reason::Stopped,
        Step::Stop(StopReason::Idle) | Step::Delete(StopReason::Idle) => Reason::Idle,
        Step::Stop(StopReason::MaxLifetime) | Step::Delete(StopReason::MaxLifetime) => {
            Reason::Expired
        }
    };
    Cause::new(reason, because + &next)
}

fn announcement(
    at: Timestamp,
    because: StopReason,
    record: &LifecycleStatus,
    terms: &Terms,
) -> String {
    let started = record.started_at.as_ref().map(|Time(started)| *started);
    let is_extended = started
        .zip(terms.max_lifetime.as_ref())
        .is_some_and(|(started, length)| at > after(started, length));
    match because {
        StopReason::MaxLifetime if is_extended => {
            let lifetime = text(terms.max_lifetime.as_ref());
            format!("stops at {at:.0}, to which {EXTEND_UNTIL} extends its run of {lifetime}")
        }
        StopReason::MaxLifetime => {
            let lifetime = text(terms.max_lifetime.as_ref());
            let extend = if terms.max_extension.is_none() {
                "commit a longer spec.parameters.lifecycle.maxLifetime".to_owned()
            } else {
                format!(
                    "annotate the claim with {EXTEND_UNTIL}=TIME, or commit a longer \
                         spec.parameters.lifecycle.maxLifetime"
                )
            };
            format!("stops at {at:.0}, {lifetime} after its start; to keep it running, {extend}")
        }
        StopReason::Idle => {
            let idle = text(terms.stop_after_idle.as_ref());
            format!("stops at {at:.0} if nobody uses it until then, {idle} after its last use")
        }
        StopReason::State => "stops, as spec.parameters.lifecycle.state says".to_owned(),
        StopReason::Requested => format!("stops, as the annotation {STOP} asks"),
    }
}

fn text(length: Option<&Length>) -> &str {
    length.map_or("as long as it may", |length| length.text.as_str())
}
