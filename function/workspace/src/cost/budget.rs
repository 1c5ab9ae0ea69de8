//! Whether the owner's budget lets a workspace run: read from the owner's `DevUser`, which
//! alone decides.

use std::time::Duration;

use api::condition::WITHIN_BUDGET;
use api::cost::{BudgetRequest, BudgetStatus, Grant};
use api::policy::WorkspacePolicy;
use api::workspace::GpuDevWorkspaceStatus;
use api::{VERSION, WORKSPACE_GROUP};
use function_runtime::composite::{Composite, Origin};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::response::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use crate::cause::{Cause, Reason};
use crate::claim;
use crate::cost::ledger::{Ledger, USD_TOLERANCE, hours};
use crate::cost::subject::Subject;
use crate::lifecycle::Step;
use crate::lifecycle::life::Life;

/// The requirement for the owner.
pub const REQUIREMENT: &str = "dev-user";
/// How soon to look for an answer.
pub const PENDING_TTL: Duration = Duration::from_secs(10);
const API_VERSION: &str = "platform.acme.io/v1alpha1";

/// An owner's budget.
#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    /// The policy has no budgets.
    Off,
    /// The owner has none, and needs none.
    Unlimited,
    /// The owner has none.
    Missing {
        /// The owner.
        owner: String,
    },
    /// Crossplane has not fetched the owner yet.
    Unknown {
        /// The owner.
        owner: String,
    },
    /// The owner has one.
    Limited(Box<Limited>),
}

/// A budget, as its `DevUser` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    owner: String,
    namespace: String,
    key: String,
    monthly: f64,
    status: Option<BudgetStatus>,
}

/// What the budget says of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It may run.
    Go,
    /// It may run, and not for as long as it asks.
    Short(Cause),
    /// What runs stays as it is.
    Keep(Cause),
    /// It may not start.
    Wait(Cause),
}

impl Verdict {
    /// Why the budget says less than it was asked for.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Go => None,
            Self::Short(cause) | Self::Keep(cause) | Self::Wait(cause) => Some(cause),
        }
    }

    /// Whether an answer is on its way.
    pub fn is_pending(&self) -> bool {
        self.cause()
            .is_some_and(|cause| cause.reason == Reason::BudgetPending)
    }
}

/// The owner, where budgets matter.
pub fn requirement(policy: &WorkspacePolicy, owner: &str) -> Option<Requirement> {
    policy.budgets.as_ref().map(|_| dev_user(owner))
}

/// The owner's `DevUser`.
pub fn dev_user(owner: &str) -> Requirement {
    debug_assert_eq!(API_VERSION, format!("{WORKSPACE_GROUP}/{VERSION}"));
    Requirement {
        name: REQUIREMENT.to_owned(),
        api_version: API_VERSION,
        kind: "DevUser",
        selector: Selector::Named(owner.to_owned()),
    }
}

/// Reads an owner's budget.
pub fn read(
    policy: &WorkspacePolicy,
    request: &Request,
    owner: &str,
    composite: Composite<'_>,
) -> Budget {
    let (Some(budgets), Ok(origin)) = (&policy.budgets, claim::origin(composite)) else {
        return Budget::Off;
    };
    let owner = owner.to_owned();
    let user = match request.required(REQUIREMENT) {
        Required::Unresolved => return Budget::Unknown { owner },
        Required::Absent => None,
        Required::Present(user) => Some(user),
    };
    let monthly = user.and_then(|user| user.pointer("/spec/budget/monthlyUSD")?.as_f64());
    match monthly {
        None if budgets.require_budget => Budget::Missing { owner },
        None => Budget::Unlimited,
        Some(monthly) => Budget::Limited(Box::new(Limited {
            owner,
            key: key(&origin, composite),
            namespace: origin.namespace,
            monthly,
            status: user
                .and_then(|user| user.pointer("/status/budget"))
                .and_then(|status| BudgetStatus::deserialize(status).ok()),
        })),
    }
}

impl Budget {
    /// Whether there is an amount that counts.
    pub fn is_limited(&self) -> bool {
        matches!(self, Self::Limited(_))
    }

    /// Until when the run that the last status asked for may last; none where nothing is
    /// said.
    pub fn ends_by(&self, previous: &GpuDevWorkspaceStatus) -> Option<jiff::Timestamp> {
        let Self::Limited(limited) = self else {
            return None;
        };
        let request = previous.cost.as_ref()?.request.as_ref();
        let request = request.filter(|request| !request.without_end)?;
        let grant = limited.grant(request)?;
        let Time(until) = grant.until;
        Some(until)
    }

    /// Whether a run may start, or go on as the claim says now.
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
                    "the policy's budgets.requireBudget lets nobody start a workspace without a \
                     budget: give DevUser {owner} a spec.budget"
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

    /// `WithinBudget`, where the policy has budgets.
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

/// A workspace's name in its owner's account: that of the composite, since a claim of the
/// same name may come while the composite of the last one still goes.
pub fn key(origin: &Origin, composite: Composite<'_>) -> String {
    format!("{}/{}", origin.namespace, composite.name())
}

impl Limited {
    /// The grant that answers a request, or what is left of one that asked for less.
    fn grant(&self, request: &BudgetRequest) -> Option<&Grant> {
        let grant = self.status.as_ref()?.grants.get(&self.key)?;
        (grant.made_at == request.made_at).then_some(grant)
    }

    /// Whether a run is granted, to the granted end of it. A run without an end asks again
    /// in each month: one that is on goes on meanwhile, and none starts.
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
        // The account of another month says nothing of what this one still costs.
        month != Some(ledger.month.to_string().as_str())
            || ledger.so_far() + request.usd - beyond <= grant.usd + USD_TOLERANCE
    }

    /// A granted run, which may ask for a later end than it was granted.
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
                    "waiting for DevUser {owner} to account for its budget: if that lasts, set \
                     budgets in the input of its Composition"
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
                format!("waiting for DevUser {owner} to account for what runs"),
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
                 stop another workspace, or have spec.budget.monthlyUSD of DevUser {owner} raised",
                request.usd,
                left.max(0.0),
                self.monthly,
            ),
        )
    }
}
