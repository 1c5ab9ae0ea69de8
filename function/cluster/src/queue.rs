//! Reads Kueue's decision about a workspace.
//!
//! Kueue creates one Workload for a StatefulSet. It gates the pods until there is quota for all of
//! them.

use api::cluster::{ChosenPods, QueueStatus};
use api::condition::ADMITTED;
use function_runtime::json::Json;
use function_runtime::object::{Observed, ObservedObject, Status};
use function_runtime::response::Condition;
use function_workspace::cause::{Cause, Reason};

use crate::seen::{Seen, number, text};

/// Kueue's label on a Workload: the UID of the object that it was created for.
pub const JOB_UID: &str = "kueue.x-k8s.io/job-uid";
/// Kueue's reason for a Workload whose StatefulSet has no replicas.
const ON_HOLD: &str = "OnHold";

/// Kueue's decision about a workspace with a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// Kueue has reserved quota, so the pods may run.
    Admitted,
    /// The workspace waits for quota.
    Waiting {
        /// The name of the LocalQueue.
        queue: String,
        /// The position in the queue; none if Kueue does not consider the workspace.
        position: Option<i32>,
        /// Why the workspace waits.
        cause: Cause,
    },
}

/// Kueue's decision; none for a workspace without a queue.
pub fn admission(seen: Seen<'_>, pods: Option<&ChosenPods>) -> Option<Admission> {
    let queue = pods?.queue.as_ref()?.name.clone();
    let Some(workload) = mine(seen) else {
        let message = format!("waiting for Kueue to see it in LocalQueue {queue}");
        return Some(Admission::Waiting {
            queue,
            position: None,
            cause: Cause::new(Reason::Pending, message),
        });
    };
    if workload.holds("Admitted") {
        return Some(Admission::Admitted);
    }
    Some(Admission::Waiting {
        cause: workload.waits_because(&queue),
        position: position(workload, seen),
        queue,
    })
}

impl Admission {
    /// Why the workspace waits; none if it is admitted.
    pub fn waiting(&self) -> Option<Cause> {
        match self {
            Self::Admitted => None,
            Self::Waiting { cause, .. } => Some(cause.clone()),
        }
    }

    /// The status for the user while the workspace waits; none if it is admitted.
    pub fn status(&self) -> Option<QueueStatus> {
        match self {
            Self::Admitted => None,
            Self::Waiting {
                queue,
                position,
                cause,
            } => Some(QueueStatus {
                name: queue.clone(),
                position: *position,
                message: Some(cause.message.clone()),
            }),
        }
    }

    /// The condition `Admitted`.
    pub fn condition(&self) -> Condition {
        match self {
            Self::Admitted => Condition::is_true(ADMITTED, "Admitted"),
            Self::Waiting { cause, .. } => cause.condition(ADMITTED),
        }
    }
}

/// A Workload.
#[derive(Clone, Copy)]
struct Workload<'a>(&'a Json<'a>);

fn mine(seen: Seen<'_>) -> Option<Workload<'_>> {
    let uid = seen.stateful_set()?.uid();
    let mut workloads = seen.workloads?.iter().map(Workload);
    workloads.find(|workload| workload.job() == Some(uid) && !workload.holds("Finished"))
}

/// The position among the Workloads that wait in the same LocalQueue: first by priority, then by
/// age. Kueue may admit a later Workload first if it needs less.
fn position(workload: Workload<'_>, seen: Seen<'_>) -> Option<i32> {
    if !workload.waits() {
        return None;
    }
    let waiting = seen.workloads.unwrap_or_default().iter().map(Workload);
    let before = waiting
        .filter(|other| other.waits() && other.queue() == workload.queue())
        .filter(|other| other.order() < workload.order())
        .count();
    i32::try_from(before + 1).ok()
}

impl<'a> Workload<'a> {
    fn job(self) -> Option<&'a str> {
        text(self.0, &["metadata", "labels", JOB_UID])
    }

    fn queue(self) -> Option<&'a str> {
        text(self.0, &["spec", "queueName"])
    }

    fn order(self) -> (i64, &'a str, &'a str) {
        let word = |field| text(self.0, &["metadata", field]).unwrap_or_default();
        let priority = number(self.0, &["spec", "priority"]);
        (-priority, word("creationTimestamp"), word("uid"))
    }

    /// Whether Kueue considers the Workload for quota. Administrators can deactivate a Workload.
    fn waits(self) -> bool {
        let is_active = self.0.pointer("/spec/active").and_then(Json::as_bool) != Some(false);
        let is_over = self.holds("QuotaReserved") || self.holds("Finished");
        is_active && !is_over && !self.is_on_hold()
    }

    fn is_on_hold(self) -> bool {
        let reserved = ObservedObject::new(self.0).failing("QuotaReserved");
        reserved.is_some_and(|reserved| reserved.reason == ON_HOLD)
    }

    fn holds(self, type_: &str) -> bool {
        ObservedObject::new(self.0).holds(type_)
    }

    /// Why the Workload waits, in Kueue's words. An eviction comes first, because it explains why a
    /// running workspace lost its quota.
    fn waits_because(self, queue: &str) -> Cause {
        let object = ObservedObject::new(self.0);
        let reserved = object.condition("QuotaReserved");
        let reason = reserved.map_or(Reason::Pending, reason_of);
        let why = reserved.map_or("", |reserved| reserved.message);
        let why = if why.is_empty() {
            format!("waiting for quota in LocalQueue {queue}")
        } else {
            format!("waiting in LocalQueue {queue}: {why}")
        };
        match object.condition("Evicted") {
            Some(evicted) if evicted.status == Status::True && !evicted.message.is_empty() => {
                let message = evicted.message.trim_end_matches('.');
                Cause::new(reason_of(evicted), format!("{message}; {why}"))
            }
            _ => Cause::new(reason, why),
        }
    }
}

/// The reason of Kueue's condition. Kubernetes requires a reason in every condition, so an empty
/// one becomes `Unknown`.
fn reason_of(condition: Observed<'_>) -> Reason {
    let reason = match condition.reason {
        "" => "Unknown",
        reason => reason,
    };
    Reason::Reported(reason.to_owned())
}
