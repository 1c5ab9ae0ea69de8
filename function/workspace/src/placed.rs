//! What the decision about a workspace asks of the placement where it runs.

use api::catalogue::Prices;
use api::policy::WorkspacePolicy;
use api::workspace::{GpuDevWorkspaceStatus, Phase, WorkspaceParameters};
use function_runtime::composite::Composite;
use function_runtime::outcome::Unresolved;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::Condition;
use function_runtime::validation::Violations;
use jiff::Timestamp;

use crate::cause::Cause;
use crate::claim;
use crate::cost::price::Running;
use crate::lifecycle::activity::Reported;
use crate::report::Composition;

/// A workspace of one call, as its composite describes it.
#[derive(Clone, Debug)]
pub struct Claimed<'a> {
    /// The call.
    pub request: &'a Request,
    /// The composite.
    pub composite: Composite<'a>,
    /// `spec.parameters`.
    pub parameters: Result<WorkspaceParameters, Violations>,
    /// The status as the last call left it.
    pub previous: GpuDevWorkspaceStatus,
}

impl<'a> Claimed<'a> {
    /// Reads the composite of a request.
    pub fn read(request: &'a Request, composite: Composite<'a>) -> Self {
        Self {
            request,
            composite,
            parameters: claim::parameters(composite),
            previous: claim::status(composite),
        }
    }
}

/// A workspace of one call, in its placement.
pub trait Placed {
    /// What Crossplane is to fetch.
    fn requirements(&self, policy: &WorkspacePolicy) -> Vec<Requirement>;

    /// What is seen of the workspace's machines, and what they cost.
    fn machines(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        prices: Option<&Prices>,
    ) -> Machines<'_>;

    /// Composes what becomes of the workspace.
    ///
    /// # Errors
    ///
    /// Something is missing, or not allowed.
    fn compose(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        course: &Course,
    ) -> Result<Composition, Unresolved>;

    /// Everything that is observed, as it must be desired to stay as it is.
    fn kept(&self, policy: &WorkspacePolicy, ends_at: Option<Timestamp>) -> Composition;

    /// The conditions of what is observed, whatever the policy is. Crossplane would set those
    /// that a refusal leaves out to Unknown.
    fn conditions(&self, policy: Option<&WorkspacePolicy>) -> Vec<Condition>;
}

/// What is seen of a workspace's machines, and what they cost.
#[derive(Clone, Debug)]
pub struct Machines<'a> {
    /// What their agent said.
    pub reported: Reported<'a>,
    /// Whether there is one that costs money.
    pub has_machine: bool,
    /// Whether something composed keeps machines running, or makes some.
    pub is_on: bool,
    /// What those cost that run.
    pub running: Running,
    /// US dollars per hour that the workspace may cost at most; or the path of the price that
    /// is missing.
    pub highest: Result<f64, String>,
}

/// What becomes of a workspace in this call, by its lifecycle and its owner's budget.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// It is to run.
    Run {
        /// When its run ends; none where nothing ends it.
        ends_at: Option<Timestamp>,
        /// What the owner's budget lets it do.
        budget: Allowance,
    },
    /// It is not to run.
    Rest {
        /// What becomes of what is left of it.
        leftovers: Leftovers,
        /// Why.
        cause: Cause,
        /// Where it stands once nothing runs.
        phase: Phase,
    },
}

/// What becomes of what is left of a workspace that does not run, as far as the policy lets
/// it go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// It is kept for the next run.
    Stay,
    /// It goes.
    Go,
}

/// What an owner's budget lets a workspace do that is to run.
#[derive(Clone, Debug, PartialEq)]
pub enum Allowance {
    /// It runs as its claim says now.
    Run,
    /// What runs stays as it is.
    Keep,
    /// Nothing starts.
    Wait(Cause),
}

impl Course {
    /// When its run ends; none where nothing ends it, or where it is not to run.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::Run { ends_at, .. } => *ends_at,
            Self::Rest { .. } => None,
        }
    }
}
