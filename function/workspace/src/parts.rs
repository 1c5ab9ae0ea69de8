//! Composed resources that are not in order. A workspace is not ready over one of them.

use std::collections::BTreeMap;

use api::condition::{COMPUTE_READY, SYNCED};
use api::workspace::Phase;
use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::object::ObservedObject;

use crate::cause::{Cause, Reason};
use crate::provider_error::ProviderError;
use crate::report::Report;

/// The report about a workspace with these composed resources. The workspace is not ready while one
/// of them has a deletion timestamp, or while its provider cannot reconcile it. `ComputeReady` then
/// names the resource. `before` is the phase that the last call reported.
pub fn reported(
    mut report: Report,
    resources: &BTreeMap<String, Composed>,
    observed: &BTreeMap<String, Json<'_>>,
    before: Option<Phase>,
) -> Report {
    let part = |name: &String| Fault::of(observed.get(name)?);
    let mut faults: Vec<Fault> = resources.keys().filter_map(part).collect();
    // A deletion ends the workspace, so it is named first.
    faults.sort_by_key(|fault| !fault.is_deletion());
    let Some(fault) = faults.first() else {
        return report;
    };
    let cause = fault.cause(faults.len() - 1);
    if report.ready {
        report.ready = false;
        report.status.message = Some(cause.message.clone());
        let compute = report.conditions.iter_mut();
        for condition in compute.filter(|condition| condition.type_ == COMPUTE_READY) {
            // The condition remembers which warning was told.
            let message = match condition.message.as_str() {
                "" => cause.message.clone(),
                said => format!("{}; {said}", cause.message),
            };
            *condition = Cause::new(cause.reason.clone(), message).condition(COMPUTE_READY);
        }
    }
    // A workspace that was ready keeps its phase while its provider only reports a problem: its
    // owner can still work.
    if fault.is_deletion() || before != Some(Phase::Ready) {
        report.take_back_ready(Phase::Provisioning);
    }
    report
}

/// A composed resource that is not in order.
struct Fault<'a> {
    kind: &'a str,
    name: &'a str,
    /// The provider's message; none for a resource that is being deleted.
    said: Option<&'a str>,
}

impl<'a> Fault<'a> {
    /// The fault of an observed resource; none if it is in order.
    fn of(observed: &'a Json<'a>) -> Option<Self> {
        let object = ObservedObject::new(observed);
        let said = match object.failing(SYNCED) {
            _ if object.deleting() => None,
            Some(failing) => Some(failing.message),
            None => return None,
        };
        Some(Self {
            kind: object.kind(),
            name: object.name(),
            said,
        })
    }

    fn is_deletion(&self) -> bool {
        self.said.is_none()
    }

    fn cause(&self, others: usize) -> Cause {
        let which = format!("{} {}", self.kind, self.name);
        let more = match others {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        match self.said {
            None => {
                let message = format!("{which} is being deleted; another one follows{more}");
                Cause::new(Reason::Deleting, message)
            }
            Some(said) => {
                let said = ProviderError::read(said).to_string();
                let said = if said.is_empty() {
                    "its condition Synced is False, without a message".to_owned()
                } else {
                    said
                };
                let message = format!(
                    "{which} cannot be reconciled{more}: {said}; the platform team must mend it"
                );
                Cause::new(Reason::ReconcileError, message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::workspace::GpuDevWorkspaceStatus;
    use function_runtime::response::Condition;
    use serde_json::{Value, json};

    fn ready() -> Report {
        Report {
            status: GpuDevWorkspaceStatus {
                phase: Some(Phase::Ready),
                ..GpuDevWorkspaceStatus::default()
            },
            ready: true,
            conditions: vec![Condition::is_true(COMPUTE_READY, "Available")],
            events: Vec::new(),
            connection: Vec::new(),
        }
    }

    fn report_over(parts: &[(&str, Value)], before: Phase) -> Report {
        let composed = |(name, _): &(&str, Value)| {
            let part = Composed {
                object: json!({}),
                ready: true,
            };
            ((*name).to_owned(), part)
        };
        let observed = |(name, part): &(&str, Value)| ((*name).to_owned(), part.clone().into());
        let resources = parts.iter().map(composed).collect();
        let observed = parts.iter().map(observed).collect();
        reported(ready(), &resources, &observed, Some(before))
    }

    fn group(condition: &str, said: &str) -> Value {
        json!({
            "kind": "SecurityGroup",
            "metadata": {"name": "vision"},
            "status": {"conditions": [{"type": "Synced", "status": condition, "message": said}]},
        })
    }

    fn deleted() -> Value {
        json!({
            "kind": "SpotPool",
            "metadata": {"name": "pool", "deletionTimestamp": "2026-11-20T10:00:00Z"},
        })
    }

    #[test]
    fn a_workspace_whose_security_group_cannot_be_updated_is_not_ready() {
        let denied = group(
            "False",
            "api error UnauthorizedOperation: no. RequestID: 1-a",
        );
        let report = report_over(&[("group", denied)], Phase::Ready);
        let message = "SecurityGroup vision cannot be reconciled: UnauthorizedOperation: no.; the \
                       platform team must mend it";
        assert!(!report.ready);
        assert_eq!(report.status.message.as_deref(), Some(message));
        assert_eq!(
            report.conditions,
            [Condition::is_false(
                COMPUTE_READY,
                "ReconcileError",
                message.to_owned()
            )]
        );
        assert_eq!(
            report.status.phase,
            Some(Phase::Ready),
            "its owner works on"
        );
    }

    #[test]
    fn a_workspace_does_not_become_ready_over_a_resource_that_fails() {
        let report = report_over(&[("group", group("False", ""))], Phase::Provisioning);
        assert_eq!(report.status.phase, Some(Phase::Provisioning));
    }

    #[test]
    fn a_workspace_whose_pool_is_being_deleted_is_not_ready() {
        let parts = [("group", group("False", "x")), ("pool", deleted())];
        let report = report_over(&parts, Phase::Ready);
        assert_eq!(report.status.phase, Some(Phase::Provisioning));
        assert_eq!(
            report.status.message.as_deref(),
            Some("SpotPool pool is being deleted; another one follows (and 1 more)")
        );
    }

    #[test]
    fn a_workspace_in_order_stays_ready() {
        let report = report_over(&[("group", group("True", ""))], Phase::Provisioning);
        assert_eq!(report, ready());
    }
}
