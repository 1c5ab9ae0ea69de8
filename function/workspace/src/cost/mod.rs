//! The cost of a workspace, and the check against its owner's budget.
//!
//! Machines and homes cost money while they are observed ([`ledger`]), at the catalogue's prices
//! ([`price`]).
//! If the policy has budgets, the workspace requests the cost of a run in its status ([`need`]),
//! and the owner's `DevUser` grants the request ([`budget`], [`function_users`]). Crossplane makes
//! the calls for one `DevUser` one after the other, so two workspaces that are reconciled at the
//! same time never start on the same money.

pub mod budget;
pub mod ledger;
pub mod month;
pub mod need;
pub mod price;
pub mod subject;

use std::time::Duration;

use api::condition::WITHIN_BUDGET;
use api::cost::CostStatus;
use api::internal::InternalStatus;
use function_runtime::response::{Condition, Event, Severity};
use jiff::Timestamp;

use crate::cause::{Cause, Reason};
use crate::lifecycle::life::{JITTER_FACTOR, Life};
use budget::{Budget, Verdict};
use ledger::Ledger;
use need::Run;
use price::Running;
use subject::Subject;

/// The cost of a workspace in one call.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Whether the owner's budget allows the run.
    pub verdict: Verdict,
    status: Option<CostStatus>,
    memory: InternalStatus,
    condition: Option<Condition>,
    was_exceeded: bool,
    said: Option<String>,
    notice: Option<String>,
    next: Option<Timestamp>,
    now: Timestamp,
}

impl Cost {
    /// Counts the cost, makes the request to the budget, and reads the budget's answer.
    pub fn of(subject: Subject<'_>, budget: &Budget, life: &Life) -> Self {
        let Subject { previous, now, .. } = subject;
        let before = Ledger::of_machines(previous, now);
        let hourly = before.hourly_of(subject.running);
        let ledger = before.at(now, hourly);
        let homes = Ledger::of_homes(previous, now);
        let homes = homes.at(now, homes.hourly_of(subject.homes.price()));
        let run = Run {
            life,
            previous,
            is_on: subject.is_on,
            has_machine: subject.running != Running::Nothing,
            hourly: subject.highest.as_ref().copied().ok(),
            ledger: &ledger,
            now,
        };
        let request = budget.is_asked().then(|| run.request()).flatten();
        let verdict = budget.verdict(subject, &ledger, request.as_ref(), life);
        let status = subject.status(&ledger, &homes, request.is_some(), life);
        let request = request.filter(|_| status.is_some());
        let next = run.next(request.as_ref());
        let next = next.into_iter().chain(homes.next()).min();
        let is_unpriced = budget.is_limited() && hourly.is_none() && run.has_machine;
        Self {
            condition: budget.condition(&verdict, life),
            was_exceeded: subject.composite.condition_reason(WITHIN_BUDGET)
                == Some(Reason::BudgetExceeded.as_str()),
            said: previous.message.clone(),
            notice: is_unpriced.then(|| {
                "the catalogue has no price for the running machines, so the budget does not count \
                 them: add the price to data.prices"
                    .to_owned()
            }),
            next: status.is_some().then_some(next).flatten(),
            verdict,
            memory: InternalStatus {
                machines: status.as_ref().and(ledger.counter()),
                homes: status.as_ref().and(homes.counter()),
                budget_request: request,
                ..InternalStatus::default()
            },
            status,
            now,
        }
    }

    /// The cost to record in status.
    pub fn status(&self) -> Option<&CostStatus> {
        self.status.as_ref()
    }

    /// What the function remembers of the cost.
    pub fn memory(&self) -> &InternalStatus {
        &self.memory
    }

    /// A message for the platform team. It is not an error of the claim.
    pub fn notice(&self) -> Option<&String> {
        self.notice.as_ref()
    }

    /// `WithinBudget`; none if the policy has no budgets.
    pub fn condition(&self) -> Option<Condition> {
        self.condition.clone()
    }

    /// The event of an exceeded budget, if it is new. `message` and `others` are already in the
    /// response: the event does not repeat them.
    pub fn event(&self, message: Option<&str>, others: &[&Event]) -> Option<Event> {
        // If another cause keeps the workspace from running, the budget is not news.
        let is_the_cause = matches!(self.verdict, Verdict::Short(_) | Verdict::Keep(_))
            || message == self.cause().map(|cause| cause.message.as_str());
        let event = self.news().filter(|_| is_the_cause)?;
        let is_told = others.iter().any(|other| other.message == event.message);
        (!is_told).then_some(event)
    }

    /// When the function must decide again.
    pub fn looks_again(&self) -> Option<Duration> {
        let next = self.next.map(|at| {
            let left = Duration::try_from(at.duration_since(self.now)).unwrap_or_default();
            left.div_f64(JITTER_FACTOR).max(budget::PENDING_TTL)
        });
        let pending = self.verdict.is_pending().then_some(budget::PENDING_TTL);
        next.into_iter().chain(pending).min()
    }

    /// Why the budget does not allow the start.
    fn cause(&self) -> Option<&Cause> {
        match &self.verdict {
            Verdict::Wait(cause) => Some(cause),
            Verdict::Go | Verdict::Short(_) | Verdict::Keep(_) => None,
        }
    }

    /// The event of an exceeded budget; none if the last call already reported it.
    fn news(&self) -> Option<Event> {
        let cause = self.verdict.cause()?;
        let is_told = self.was_exceeded || self.said.as_deref() == Some(&cause.message);
        let is_news = cause.reason == Reason::BudgetExceeded && !is_told;
        is_news.then(|| Event {
            severity: Severity::Warning,
            reason: "BudgetExceeded",
            message: cause.message.clone(),
        })
    }
}
