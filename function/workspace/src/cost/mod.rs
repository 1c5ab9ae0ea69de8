//! What a workspace costs, and whether its owner's budget has room for it.
//!
//! Its machines are counted while they are seen ([`ledger`]), at the catalogue's prices
//! ([`price`]). Where the policy has budgets, a run is asked for in status ([`need`]) and
//! granted by the owner's `DevUser`, whose calls Crossplane makes one after the other
//! ([`budget`], [`function_users`]): two workspaces that are reconciled at once never
//! start on the same money.

pub mod budget;
pub mod ledger;
pub mod month;
pub mod need;
pub mod price;
pub mod subject;

use std::time::Duration;

use api::condition::WITHIN_BUDGET;
use api::cost::CostStatus;
use function_runtime::response::{Condition, Event, Severity};
use jiff::Timestamp;

use crate::cause::{Cause, Reason};
use crate::lifecycle::life::{JITTER_FACTOR, Life};
use budget::{Budget, Verdict};
use ledger::Ledger;
use need::Run;
use price::Running;
use subject::Subject;

/// What a workspace costs, as it stands in this call.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Whether the owner's budget lets it run.
    pub verdict: Verdict,
    status: Option<CostStatus>,
    condition: Option<Condition>,
    was_exceeded: bool,
    said: Option<String>,
    notice: Option<String>,
    next: Option<Timestamp>,
    now: Timestamp,
}

impl Cost {
    /// Counts, and asks for what is needed.
    pub fn of(subject: Subject<'_>, budget: &Budget, life: &Life) -> Self {
        let Subject { previous, now, .. } = subject;
        let last = previous.cost.as_ref();
        let before = Ledger::read(last, now);
        let hourly = match subject.running {
            Running::Nothing => None,
            Running::Priced(usd, _) => Some(usd),
            // What ran at a known price goes on at it.
            Running::Unpriced => before.since.map(|_| before.hourly),
        };
        let ledger = before.at(now, hourly);
        let run = Run {
            life,
            previous,
            is_on: subject.is_on,
            has_machine: subject.running != Running::Nothing,
            hourly: subject.highest.as_ref().copied().ok(),
            ledger: &ledger,
            now,
        };
        let request = budget.is_limited().then(|| run.request()).flatten();
        let verdict = budget.verdict(subject, &ledger, request.as_ref(), life);
        let status = subject.status(&ledger, request, life);
        let next = run.next(status.as_ref().and_then(|s| s.request.as_ref()));
        let is_unpriced = budget.is_limited() && hourly.is_none() && run.has_machine;
        Self {
            condition: budget.condition(&verdict, life),
            was_exceeded: subject.composite.condition_reason(WITHIN_BUDGET)
                == Some(Reason::BudgetExceeded.as_str()),
            said: previous.message.clone(),
            notice: is_unpriced.then(|| {
                "the catalogue has no price of what runs, so the budget does not count it: add \
                 it to data.prices"
                    .to_owned()
            }),
            next: status.is_some().then_some(next).flatten(),
            verdict,
            status,
            now,
        }
    }

    /// What is recorded.
    pub fn status(&self) -> Option<&CostStatus> {
        self.status.as_ref()
    }

    /// What the platform team should know, although nothing is wrong with the claim.
    pub fn notice(&self) -> Option<&String> {
        self.notice.as_ref()
    }

    /// `WithinBudget`, where the policy has budgets.
    pub fn condition(&self) -> Option<Condition> {
        self.condition.clone()
    }

    /// What somebody should hear of beside a status's message and other events, when they
    /// have not heard it.
    pub fn event(&self, message: Option<&str>, others: &[&Event]) -> Option<Event> {
        // While something else keeps it from running, that is the news.
        let is_the_cause = matches!(self.verdict, Verdict::Short(_) | Verdict::Keep(_))
            || message == self.cause().map(|cause| cause.message.as_str());
        let event = self.news().filter(|_| is_the_cause)?;
        let is_told = others.iter().any(|other| other.message == event.message);
        (!is_told).then_some(event)
    }

    /// How soon another decision may follow.
    pub fn looks_again(&self) -> Option<Duration> {
        let next = self.next.map(|at| {
            let left = Duration::try_from(at.duration_since(self.now)).unwrap_or_default();
            left.div_f64(JITTER_FACTOR).max(budget::PENDING_TTL)
        });
        let pending = self.verdict.is_pending().then_some(budget::PENDING_TTL);
        next.into_iter().chain(pending).min()
    }

    /// Why the budget keeps it from running.
    fn cause(&self) -> Option<&Cause> {
        match &self.verdict {
            Verdict::Wait(cause) => Some(cause),
            Verdict::Go | Verdict::Short(_) | Verdict::Keep(_) => None,
        }
    }

    /// What somebody should hear of, when they have not heard it.
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
