//! Whether anybody can reach a workspace: `AccessReady`.
//!
//! A machine that nobody can enter costs as much as any other. From behaviour version v3 on, a
//! workspace is ready only if somebody can reach it, and starts only then unless the policy says
//! otherwise.

use api::condition::{ACCESS_READY, BASTION_OUT_OF_REACH};
use api::policy::{BehaviourVersion, WorkspacePolicy};
use api::workspace::Phase;
use function_runtime::composite::Composite;
use function_runtime::object::Status;
use function_runtime::response::Condition;

use crate::cause::{Cause, Reason};
use crate::reach::Reach;
use crate::report::Report;
use crate::tenant_text::bounded;

/// Whether anybody can reach a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Somebody can.
    Open,
    /// Somebody can, but nobody by way of the policy's bastion. The message says why, and who can
    /// change that.
    PastBastion(String),
    /// Nobody can.
    Closed(Cause),
}

impl Access {
    /// The access of a workspace in this call; none before behaviour version v3, which has no
    /// such condition. `suspended` is the cause if the owner is suspended. `keys` is the message if
    /// no key and no authority may log in. `reach` says who may connect.
    pub fn of(
        policy: &WorkspacePolicy,
        suspended: Option<&Cause>,
        keys: Option<&str>,
        reach: &Reach,
    ) -> Option<Self> {
        match policy.behaviour_version {
            BehaviourVersion::V1 | BehaviourVersion::V2 => return None,
            BehaviourVersion::V3 => {}
        }
        if let Some(suspended) = suspended {
            return Some(Self::Closed(suspended.clone()));
        }
        let reason = match (keys, &reach.closed) {
            (None, None) => {
                let past = reach.without_bastion.clone().map(Self::PastBastion);
                return Some(past.unwrap_or(Self::Open));
            }
            (Some(_), _) => Reason::NoPublicKeys,
            (None, Some(closed)) => closed.reason.clone(),
        };
        let closed = reach.closed.iter().map(|closed| closed.message.as_str());
        let missing: Vec<&str> = keys.into_iter().chain(closed).collect();
        Some(Self::Closed(Cause::new(reason, missing.join("; "))))
    }

    /// The access that the last call reported; none if no call has.
    pub fn observed(composite: Composite<'_>) -> Option<Self> {
        let observed = composite.condition(ACCESS_READY)?;
        if observed.status == Status::True {
            return Some(match observed.reason {
                BASTION_OUT_OF_REACH => Self::PastBastion(bounded(observed.message)),
                _ => Self::Open,
            });
        }
        let known = [
            Reason::NoPublicKeys,
            Reason::NoNetworks,
            Reason::BastionOutOfReach,
            Reason::OwnerSuspended,
        ];
        let reason = known.into_iter().find(|r| r.as_str() == observed.reason);
        let message = match observed.message {
            "" => "nobody could reach it when its claim was valid last",
            message => message,
        };
        let reason = reason.unwrap_or(Reason::NoNetworks);
        Some(Self::Closed(Cause::new(reason, bounded(message))))
    }

    /// Why the workspace must not start; none if it may.
    pub fn barrier(&self, policy: &WorkspacePolicy) -> Option<&Cause> {
        match self {
            Self::Closed(cause) if policy.require_access => Some(cause),
            Self::Open | Self::PastBastion(_) | Self::Closed(_) => None,
        }
    }

    /// The report about a workspace with this access. A workspace that nobody can reach is not
    /// ready, even if its machine runs. `before` is the phase that the last call reported.
    #[must_use]
    pub fn reported(&self, mut report: Report, before: Option<Phase>) -> Report {
        let condition = match self {
            Self::Open => Condition::is_true(ACCESS_READY, "Reachable"),
            Self::PastBastion(message) => {
                Condition::true_with_message(ACCESS_READY, BASTION_OUT_OF_REACH, message.as_str())
            }
            Self::Closed(cause) => cause.condition(ACCESS_READY),
        };
        report.conditions.push(condition);
        let Self::Closed(cause) = self else {
            return report;
        };
        report.hold_back(Phase::Failed, cause.message.clone(), before);
        report
    }
}
