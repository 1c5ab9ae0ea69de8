//! The effective policy: the Composition's input, within the platform's limits.

use api::policy::WorkspacePolicy;
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::outcome::{Hold, Refusal, Unresolved};
use serde_json::Value;

use crate::limits::{Limits, tighten};
use crate::{memory, policy};

/// The policy of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum EffectivePolicy {
    /// The policy is in force. It lies within the platform's limits.
    InForce(WorkspacePolicy),
    /// The Composition's policy is readable, but the platform's limits are not, or they contradict
    /// it. It tells only which resources Crossplane must fetch.
    NotInForce(WorkspacePolicy, Unresolved),
    /// The Composition's policy cannot be read.
    Unreadable(Refusal),
}

impl EffectivePolicy {
    /// Reads the Composition's input.
    pub fn read(
        input: Option<&Value>,
        limits: &Result<Option<Limits<'_>>, Hold>,
        previous: &GpuDevWorkspaceStatus,
    ) -> Self {
        let mut policy = match policy::read(input) {
            Ok(policy) => policy,
            Err(violations) => return Self::Unreadable(Refusal::policy(&violations)),
        };
        let why: Unresolved = match limits {
            Ok(None) => return Self::InForce(policy),
            Ok(Some(Limits { name, data })) => match tighten::tighten(&mut policy, data, name) {
                Ok(()) => return Self::InForce(policy),
                Err(violations) => Refusal::policy(&violations).into(),
            },
            Err(why) => why.clone().into(),
        };
        if memory::has_asked_a_budget(previous) {
            // The platform's limits may require the budget that this run asked.
            policy.budgets.get_or_insert_default();
        }
        Self::NotInForce(policy, why)
    }

    /// The policy in force.
    ///
    /// # Errors
    ///
    /// Why no policy is in force.
    pub fn in_force(&self) -> Result<&WorkspacePolicy, Unresolved> {
        match self {
            Self::InForce(policy) => Ok(policy),
            Self::NotInForce(_, why) => Err(why.clone()),
            Self::Unreadable(why) => Err(why.clone().into()),
        }
    }

    /// The policy that tells which resources Crossplane must fetch.
    pub fn for_requirements(&self) -> Option<&WorkspacePolicy> {
        match self {
            Self::InForce(policy) | Self::NotInForce(policy, _) => Some(policy),
            Self::Unreadable(_) => None,
        }
    }
}
