//! Conditions that change only when their meaning changes.

use api::condition::{Condition, ConditionStatus, READY, SYNCED};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The reasons that every managed resource of Crossplane uses.
pub mod reason {
    /// Reason of `Ready`: the resource is usable.
    pub const AVAILABLE: &str = "Available";
    /// Reason of `Ready`: the resource exists and is not usable.
    pub const UNAVAILABLE: &str = "Unavailable";
    /// Reason of `Ready`: the resource is being created.
    pub const CREATING: &str = "Creating";
    /// Reason of `Ready`: the resource is being deleted.
    pub const DELETING: &str = "Deleting";
    /// Reason of `Synced`: the reconcile succeeded.
    pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
    /// Reason of `Synced`: the reconcile failed.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    /// Reason of `Synced`: the resource is paused.
    pub const RECONCILE_PAUSED: &str = "ReconcilePaused";
}

/// A condition without its transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The condition's type.
    pub type_: &'static str,
    /// The condition's status.
    pub status: ConditionStatus,
    /// The condition's reason, a constant word.
    pub reason: &'static str,
    /// The condition's message for users. It changes only when the meaning changes.
    pub message: String,
}

impl Verdict {
    /// A verdict of any type.
    pub fn new(
        type_: &'static str,
        status: ConditionStatus,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            status,
            reason,
            message: message.into(),
        }
    }

    /// The condition `Ready` with this status.
    pub fn ready(status: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(READY, status.into(), reason, message)
    }

    /// The condition `Synced=True`.
    pub fn synced() -> Self {
        Self::synced_with(String::new())
    }

    /// The condition `Synced=True` with advice for an administrator.
    pub fn synced_with(advice: String) -> Self {
        Self::new(
            SYNCED,
            ConditionStatus::True,
            reason::RECONCILE_SUCCESS,
            advice,
        )
    }

    /// The condition `Synced=False` after an error. `step` is one of Crossplane's prefixes:
    /// `connect`, `observe`, `create`, `update`, `delete`.
    pub fn not_synced(step: &str, error: &dyn std::fmt::Display) -> Self {
        Self::new(
            SYNCED,
            ConditionStatus::False,
            reason::RECONCILE_ERROR,
            format!("{step} failed: {error}"),
        )
    }

    /// The condition `Synced=False` of a paused resource.
    pub fn paused() -> Self {
        Self::new(
            SYNCED,
            ConditionStatus::False,
            reason::RECONCILE_PAUSED,
            "Reconciliation is paused either through the crossplane.io/paused annotation or \
             empty managementPolicies",
        )
    }
}

/// Sets a condition. Its transition time changes only when its status does. Conditions stay sorted
/// by type, so that equal sets have one form.
pub fn set(
    conditions: &mut Vec<Condition>,
    verdict: Verdict,
    generation: Option<i64>,
    now: Timestamp,
) {
    let previous = conditions.iter().position(|c| c.type_ == verdict.type_);
    let previous = previous.map(|index| conditions.remove(index));
    let last_transition_time = previous
        .filter(|c| c.status == verdict.status)
        .map_or_else(|| Time(now), |c| c.last_transition_time);
    conditions.push(Condition {
        type_: verdict.type_.to_owned(),
        status: verdict.status,
        reason: verdict.reason.to_owned(),
        message: verdict.message,
        last_transition_time,
        observed_generation: generation,
    });
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_still_holds_keeps_its_time() {
        let mut conditions = Vec::new();
        let first = Timestamp::UNIX_EPOCH;
        let later = Timestamp::from_second(60).unwrap();
        set(&mut conditions, Verdict::synced(), Some(1), first);
        set(&mut conditions, Verdict::synced(), Some(2), later);
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].last_transition_time, Time(first));
        assert_eq!(conditions[0].observed_generation, Some(2));
        set(&mut conditions, Verdict::paused(), Some(2), later);
        assert_eq!(conditions[0].last_transition_time, Time(later));
    }
}
