//! The interface between the decision about a workspace and its placement.

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

/// A workspace in one call, as its composite describes it.
#[derive(Clone, Debug)]
pub struct Claimed<'a> {
    /// The request of this call.
    pub request: &'a Request,
    /// The observed composite.
    pub composite: Composite<'a>,
    /// `spec.parameters`, or the violations in them.
    pub parameters: Result<WorkspaceParameters, Violations>,
    /// The status that the last call wrote.
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

/// A workspace in its placement, in one call.
pub trait Placed {
    /// Resources that Crossplane must fetch for the workspace.
    fn requirements(&self, policy: &WorkspacePolicy) -> Vec<Requirement>;

    /// The observed machines of the workspace, and their cost.
    fn machines(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        prices: Option<&Prices>,
    ) -> Machines<'_>;

    /// Composes the resources of the workspace for `course`.
    ///
    /// # Errors
    ///
    /// Required data is missing, or the policy does not allow the claim.
    fn compose(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        course: &Course,
    ) -> Result<Composition, Unresolved>;

    /// All observed resources, desired as they are observed.
    fn kept(&self, policy: &WorkspacePolicy, ends_at: Option<Timestamp>) -> Composition;

    /// The conditions of the observed resources, which do not depend on the policy. Crossplane
    /// would set conditions that a refusal leaves out to Unknown.
    fn conditions(&self, policy: Option<&WorkspacePolicy>) -> Vec<Condition>;
}

/// The observed machines of a workspace, and their cost.
#[derive(Clone, Debug)]
pub struct Machines<'a> {
    /// The last report of the agent.
    pub reported: Reported<'a>,
    /// Whether a machine exists that costs money.
    pub has_machine: bool,
    /// Whether a composed resource keeps machines running or creates them.
    pub is_on: bool,
    /// The price of the running machines.
    pub running: Running,
    /// Highest price of the workspace in US dollars per hour, or the path of the missing price.
    pub highest: Result<f64, String>,
}

/// What the function does with a workspace in this call. It follows from lifecycle and budget.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// The workspace runs.
    Run {
        /// When the run ends; none for a run without an end.
        ends_at: Option<Timestamp>,
        /// What the owner's budget allows.
        budget: Allowance,
    },
    /// The workspace does not run.
    Rest {
        /// What happens to the rest of the workspace, for example its home.
        leftovers: Leftovers,
        /// Why the workspace does not run.
        cause: Cause,
        /// The phase once all machines or pods are gone.
        phase: Phase,
    },
}

/// What happens to the rest of a stopped workspace, within the limits of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// The rest is kept for the next run.
    Stay,
    /// The rest is deleted.
    Go,
}

/// What an owner's budget allows for a workspace that is to run.
#[derive(Clone, Debug, PartialEq)]
pub enum Allowance {
    /// The workspace runs as its claim says.
    Run,
    /// Running machines stay as they are. Changes of the claim have no effect.
    Keep,
    /// The workspace must not start.
    Wait(Cause),
}

impl Course {
    /// When the run ends; none for a run without an end and for a workspace that does not run.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::Run { ends_at, .. } => *ends_at,
            Self::Rest { .. } => None,
        }
    }
}
