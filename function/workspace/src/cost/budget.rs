//! Checks the owner's budget. The owner's `DevUser` makes the decision, and this module reads it.

use std::time::Duration;

use api::condition::WITHIN_BUDGET;
use api::cost::{BudgetRequest, BudgetStatus, Grant};
use api::policy::WorkspacePolicy;
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::composite::{Composite, Origin};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::response::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cause::{Cause, Reason};
use crate::cost::ledger::{Ledger, USD_TOLERANCE, hours};
use crate::cost::subject::Subject;
use crate::labels::API_VERSION;
use crate::lifecycle::Step;
use crate::lifecycle::life::Life;
use crate::{memory, suspension};

/// Name of the requirement for the owner's `DevUser`.
pub const REQUIREMENT: &str = suspension::DEV_USER;
/// When to look again while the budget has not answered.
pub const PENDING_TTL: Duration = Duration::from_secs(10);

/// The budget of an owner.
#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    /// The policy has no budgets.
    Off,
    /// The owner has no budget, and the policy does not require one.
    Unlimited,
    /// The owner has no budget, and the policy requires one.
    Missing {
        /// The owner's name.
        owner: String,
    },
    /// Crossplane has not fetched the owner's `DevUser` yet.
    Unknown {
        /// The owner's name.
        owner: String,
    },
    /// The owner has a budget.
    Limited(Box<Limited>),
}

/// A budget, as the status of its `DevUser` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    owner: String,
    namespace: String,
    key: String,
    monthly: f64,
    status: Option<BudgetStatus>,
}

/// What the budget allows for a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The workspace may run.
    Go,
    /// The workspace may run, but must end earlier than it requested.
    Short(Cause),
    /// Running machines stay as they are. Changes of the claim have no effect.
    Keep(Cause),
    /// The workspace must not start.
    Wait(Cause),
}

impl Verdict {
    /// Why the budget allows less than requested; none if it allows everything.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Go => None,
            Self::Short(cause) | Self::Keep(cause) | Self::Wait(cause) => Some(cause),
        }
    }

    /// Whether the `DevUser` has not answered yet.
    pub fn is_pending(&self) -> bool {
        self.cause()
            .is_some_and(|cause| cause.reason == Reason::BudgetPending)
    }
}

/// The requirement for the owner's `DevUser`; none if the policy has no budgets. While the policy
/// cannot be read, a workspace that asked a budget before still asks it.
pub fn requirement(
    policy: Option<&WorkspacePolicy>,
    previous: &GpuDevWorkspaceStatus,
    owner: &str,
) -> Option<Requirement> {
    (counts(policy, previous) && !owner.is_empty()).then(|| dev_user(owner))
}

/// Whether a budget counts the workspace.
fn counts(policy: Option<&WorkspacePolicy>, previous: &GpuDevWorkspaceStatus) -> bool {
    policy.map_or_else(
        || memory::has_asked_a_budget(previous),
        |policy| policy.budgets.is_some(),
    )
}

/// The requirement for the owner's `DevUser`.
pub fn dev_user(owner: &str) -> Requirement {
    Requirement {
        name: REQUIREMENT.to_owned(),
        api_version: API_VERSION,
        kind: "DevUser",
        selector: Selector::Named(owner.to_owned()),
    }
}

/// Reads the owner's budget from the required `DevUser`. `policy` is none if it cannot be read.
pub fn read(
    policy: Option<&WorkspacePolicy>,
    previous: &GpuDevWorkspaceStatus,
    request: &Request,
    composite: Composite<'_>,
    owner: &str,
) -> Budget {
    if !counts(policy, previous) {
        return Budget::Off;
    }
    let budgets = policy.and_then(|policy| policy.budgets.as_ref());
    let requires_budget = budgets.is_some_and(|budgets| budgets.require_budget);
    let Some(origin) = composite.origin() else {
        return Budget::Off;
    };
    let owner = owner.to_owned();
    let user = match request.required(REQUIREMENT) {
        Required::Unresolved => return Budget::Unknown { owner },
        Required::Absent => None,
        Required::Present(user) => Some(user),
    };
    let monthly = user.and_then(|user| user.pointer("/spec/budget/monthlyUsd")?.as_f64());
    match monthly {
        None if requires_budget => Budget::Missing { owner },
        None => Budget::Unlimited,
        Some(monthly) => Budget::Limited(Box::new(Limited {
            owner,
            key: key(&origin, composite.name()),
            namespace: origin.namespace,
            monthly,
            status: user
                .and_then(|user| user.pointer("/status/budget"))
                .and_then(|status| status.read().ok()),
        })),
    }
}

impl Budget {
    /// Whether the owner has a budget with an amount.
    pub fn is_limited(&self) -> bool {
        matches!(self, Self::Limited(_))
    }

    /// Whether the workspace asks the budget for its runs. The owner may have one that Crossplane
    /// has not fetched yet.
    pub fn is_asked(&self) -> bool {
        matches!(self, Self::Limited(_) | Self::Unknown { .. })
    }

    /// When the granted run must end; none without a grant and for a run without an end. The grant
    /// answers the request in the last status.
    pub fn ends_by(&self, previous: &GpuDevWorkspaceStatus) -> Option<jiff::Timestamp> {
        let Self::Limited(limited) = self else {
            return None;
        };
        let request = previous.internal.as_ref()?.budget_request.as_ref();
        let request = request.filter(|request| !request.without_end)?;
        let grant = limited.grant(request)?;
        let Time(until) = grant.until;
        Some(until)
    }

    /// Whether a run may start, or may continue as the claim says.
    pub fn verdict(
        &self,
        subject: Subject<'_>,
        ledger: &Ledger,
        request: Option<&BudgetRequest>,
        life: &Life,
    ) -> Verdict {
        if life.decision.step != Step::Run {
            return Verdict::Go;
        }
        let cause = match self {
            Self::Off | Self::Unlimited => return Verdict::Go,
            Self::Missing { owner } => Cause::new(
                Reason::BudgetMissing,
                format!(
                    "the policy's budgets.requireBudget requires a budget: give DevUser {owner} a \
                     spec.budget"
                ),
            ),
            Self::Unknown { owner } => Cause::new(
                Reason::BudgetPending,
                format!("waiting for Crossplane to fetch DevUser {owner}, whose budget counts"),
            ),
            Self::Limited(limited) => match (subject.highest, request) {
                (Err(path), _) => limited.without_price(path),
                (Ok(_), None) => return Verdict::Go,
                (Ok(_), Some(request)) if limited.covers(request, ledger, subject.is_on) => {
                    return limited.granted(request, ledger);
                }
                (Ok(_), Some(request)) => limited.refusal(request, ledger),
            },
        };
        if !subject.is_on {
            Verdict::Wait(cause)
        } else if self.is_limited() {
            Verdict::Keep(cause)
        } else {
            Verdict::Go
        }
    }

    /// `WithinBudget`; none if the policy has no budgets.
    pub fn condition(&self, verdict: &Verdict, life: &Life) -> Option<Condition> {
        if *self == Self::Off {
            return None;
        }
        if let Some(cause) = verdict.cause() {
            return Some(cause.condition(WITHIN_BUDGET));
        }
        let reason = match self {
            Self::Limited(_) if life.decision.step != Step::Run => "NotRunning",
            Self::Limited(_) => "Granted",
            Self::Off | Self::Unlimited | Self::Missing { .. } | Self::Unknown { .. } => "NoBudget",
        };
        Some(Condition::is_true(WITHIN_BUDGET, reason))
    }
}

/// The key of a workspace in its owner's account. It holds the composite's name, because a new
/// claim may get the name of a deleted claim while the old composite still exists.
pub fn key(origin: &Origin, composite: &str) -> String {
    format!("{}/{composite}", origin.namespace)
}

impl Limited {
    /// The grant for this run. Its amount may be smaller than the request's.
    fn grant(&self, request: &BudgetRequest) -> Option<&Grant> {
        let grant = self.status.as_ref()?.grants.get(&self.key)?;
        (grant.made_at == request.made_at).then_some(grant)
    }

    /// Whether the grant covers the run until the granted end. A run without an end needs a grant
    /// for each new month: meanwhile a running workspace continues, and a stopped one does not
    /// start.
    fn covers(&self, request: &BudgetRequest, ledger: &Ledger, is_on: bool) -> bool {
        let Some(grant) = self.grant(request) else {
            return false;
        };
        let (Time(until), Time(granted)) = (&request.until, &grant.until);
        if request.without_end && granted < until {
            return is_on;
        }
        let beyond = hours(*granted, *until) * request.hourly_usd;
        let month = self.status.as_ref().map(|status| status.month.as_str());
        // The account of another month does not contain the cost in this month.
        month != Some(ledger.month.to_string().as_str())
            || ledger.so_far() + request.usd - beyond <= grant.usd + USD_TOLERANCE
    }

    /// The verdict for a granted run. The run may have requested a later end than the grant has.
    fn granted(&self, request: &BudgetRequest, ledger: &Ledger) -> Verdict {
        let granted = self.grant(request).map(|grant| &grant.until);
        let Some(Time(granted)) = granted.filter(|Time(until)| *until < request.until.0) else {
            return Verdict::Go;
        };
        let why = self.refusal(request, ledger);
        if why.reason != Reason::BudgetExceeded {
            return Verdict::Go;
        }
        let message = format!("it runs until {granted:.0} as granted: {}", why.message);
        Verdict::Short(Cause::new(Reason::BudgetExceeded, message))
    }

    fn without_price(&self, path: &str) -> Cause {
        let owner = &self.owner;
        Cause::new(
            Reason::PriceMissing,
            format!(
                "the catalogue has no {path}, and the budget of DevUser {owner} needs it: add the \
                 price"
            ),
        )
    }

    fn refusal(&self, request: &BudgetRequest, ledger: &Ledger) -> Cause {
        let owner = &self.owner;
        let Some(status) = &self.status else {
            return Cause::new(
                Reason::BudgetPending,
                format!(
                    "waiting for the budget status of DevUser {owner}: if that lasts, set budgets in \
                     the input of its Composition"
                ),
            );
        };
        if let Some(namespace) = status.namespace.as_ref()
            && *namespace != self.namespace
        {
            return Cause::new(
                Reason::OtherNamespace,
                format!(
                    "the budget of DevUser {owner} counts the workspaces of namespace {namespace}: \
                     create the claim there, or set budgets.everywhere in the input of its \
                     Composition"
                ),
            );
        }
        if request.running && !status.grants.contains_key(&self.key) {
            return Cause::new(
                Reason::BudgetPending,
                format!("waiting for DevUser {owner} to count the running workspace"),
            );
        }
        let spent = ledger.so_far();
        let own = [status.grants.get(&self.key), status.offers.get(&self.key)];
        let own = own.into_iter().flatten().map(|grant| grant.usd - spent);
        let own = own.fold(0.0, f64::max);
        let left = self.monthly - status.spent_usd - status.reserved_usd + own;
        let missing = request.usd - left;
        if missing <= USD_TOLERANCE {
            return Cause::new(
                Reason::BudgetPending,
                format!(
                    "waiting for DevUser {owner} to grant {:.2} USD",
                    request.usd
                ),
            );
        }
        let Time(until) = request.until;
        Cause::new(
            Reason::BudgetExceeded,
            format!(
                "needs {:.2} USD until {until:.0}, {:.2} of {:.2} USD are left this month: \
                 {missing:.2} too much; commit a shorter spec.parameters.lifecycle.maxLifetime, \
                 stop another workspace, or have spec.budget.monthlyUsd of DevUser {owner} raised",
                request.usd,
                left.max(0.0),
                self.monthly,
            ),
        )
    }
}
