//! The interface between the decision about a workspace and its placement.

use api::catalogue::Prices;
use api::limits::WorkspaceLimits;
use api::policy::WorkspacePolicy;
use api::workspace::{GpuDevWorkspaceStatus, Phase, WorkspaceParameters};
use function_runtime::composite::Composite;
use function_runtime::outcome::{Refusal, Unresolved};
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::validation::Violations;
use jiff::Timestamp;

use crate::cause::Cause;
use crate::composition::Composition;
use crate::cost::price::{Homes, Running};
use crate::effective::EffectivePolicy;
use crate::lifecycle::activity::Reported;
use crate::setup::Installation;
use crate::{claim, limits, memory, owner, suspension};

/// A workspace in one call, as its composite describes it.
#[derive(Clone, Debug)]
pub struct Claimed<'a> {
    /// The request of this call.
    pub request: &'a Request<'a>,
    /// The observed composite.
    pub composite: Composite<'a>,
    /// `spec.parameters`, or the violations in them.
    pub parameters: Result<WorkspaceParameters, Violations>,
    /// The status that the last call wrote.
    pub previous: GpuDevWorkspaceStatus,
    /// The policy, within the platform's limits.
    pub policy: EffectivePolicy,
    /// The platform's limits; none without readable limits.
    pub limits: Option<WorkspaceLimits>,
    /// The name of the `EnvironmentConfig` with the platform's limits; none without the function's
    /// flag `--limits`.
    pub limits_name: Option<&'a str>,
    /// The owner of the workspace; empty if nothing names a valid one.
    pub owner: String,
    /// Why nothing starts for the owner and no key of theirs counts; none unless the owner's
    /// `DevUser` is suspended.
    pub suspended: Option<Cause>,
}

impl<'a> Claimed<'a> {
    /// Reads the composite of a request. `limits` names the `EnvironmentConfig` with the platform's
    /// limits.
    pub fn read(
        request: &'a Request<'a>,
        composite: Composite<'a>,
        limits: Option<&'a str>,
    ) -> Self {
        let previous = memory::previous(request, composite);
        let found = limits::read(limits, request);
        let policy = EffectivePolicy::read(request.policy.as_ref(), &found, &previous);
        let for_requirements = policy.for_requirements();
        let owner = owner::of(composite, &previous, for_requirements, request);
        Self {
            suspended: suspension::of(request, &owner),
            owner,
            request,
            composite,
            parameters: claim::parameters(composite),
            previous,
            policy,
            limits: found.ok().flatten().map(|found| found.data),
            limits_name: limits,
        }
    }
}

/// A workspace in its placement, in one call.
///
/// `policy` is none if no policy is in force, because policy or platform limits cannot be read.
/// `parameters` are none if the claim's parameters are invalid.
pub trait Placed {
    /// Resources that Crossplane must fetch for the workspace.
    fn requirements(&self, policy: Option<&WorkspacePolicy>) -> Vec<Requirement>;

    /// The observed machines of the workspace, and their cost.
    fn machines(
        &self,
        policy: Option<&WorkspacePolicy>,
        parameters: Option<&WorkspaceParameters>,
        prices: Option<&Prices>,
    ) -> Machines<'_>;

    /// The highest price of the workspace in US dollars per hour.
    ///
    /// # Errors
    ///
    /// The path of a price that the catalogue does not have.
    fn highest_price(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        prices: Option<&Prices>,
    ) -> Result<f64, String>;

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
    fn kept(&self, policy: Option<&WorkspacePolicy>, end: End) -> Composition;

    /// All observed resources of a workspace that does not run. The machines end, and everything
    /// else is kept. This needs no fetched resource and no valid claim.
    ///
    /// # Errors
    ///
    /// A resource cannot be written as JSON.
    fn stopped(
        &self,
        policy: Option<&WorkspacePolicy>,
        rest: &Rest,
    ) -> Result<Composition, Refusal>;
}

/// The observed machines and homes of a workspace, and their cost.
#[derive(Clone, Debug)]
pub struct Machines<'a> {
    /// The last report of the agent.
    pub reported: Reported<'a>,
    /// How far the setup of the machine that the owner can use is.
    pub installation: Installation,
    /// Whether a machine exists that costs money.
    pub has_machine: bool,
    /// Whether a stop deletes the machine's disk although no home keeps the owner's files, and the
    /// owner has to be told.
    pub stop_deletes_disk: bool,
    /// Whether a composed resource keeps machines running or creates them.
    pub is_on: bool,
    /// The price of the running machines.
    pub running: Running,
    /// The homes that exist.
    pub homes: Homes,
}

/// What the function does with a workspace in this call. It follows from lifecycle and budget.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// The workspace runs.
    Run {
        /// When the run ends.
        end: End,
        /// What the owner's budget allows.
        budget: Allowance,
    },
    /// The workspace does not run.
    Rest(Rest),
}

/// When the run of a workspace ends, even if the workspace is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing ends the run.
    Never,
    /// The run ends at this time.
    At(Timestamp),
    /// The run has not started. A machine of it must end between the two times: an observed end
    /// between them stays, so that a waiting resource does not change in every call.
    Unstarted {
        /// The earliest end.
        earliest: Timestamp,
        /// The latest end.
        latest: Timestamp,
    },
    /// The limits of the run are not known. An observed end stays.
    Unknown,
}

impl End {
    /// The end to desire, if `observed` is the observed one.
    #[must_use]
    pub fn after(self, observed: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::At(at) => Some(at),
            Self::Unstarted { earliest, latest } => {
                let stays = observed.filter(|at| (earliest..=latest).contains(at));
                Some(stays.unwrap_or(latest))
            }
            Self::Unknown => observed,
        }
    }
}

/// A workspace that does not run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// What happens to the rest of the workspace, for example its home.
    pub leftovers: Leftovers,
    /// Why the workspace does not run.
    pub cause: Cause,
    /// The phase once all machines or pods are gone.
    pub phase: Phase,
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
