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
use jiff::Timestamp;

use crate::cause::Cause;
use crate::lifecycle::life::Life;
use budget::{Budget, Verdict};
use function_runtime::response::{CONFIG_RESOLVED, Condition, Event, Response, Severity};
use ledger::Ledger;
use need::Run;
use price::Running;
use subject::Subject;

/// A margin for Crossplane, which comes back up to a tenth earlier than asked.
const EARLY: f64 = 0.9;

/// What a workspace costs, as it stands in this call.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Whether the owner's budget lets it run.
    pub verdict: Verdict,
    status: Option<CostStatus>,
    condition: Option<Condition>,
    told: Option<String>,
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
            told: subject
                .composite
                .condition_reason(WITHIN_BUDGET)
                .map(str::to_owned),
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

    /// Adds what there is to tell, and when to look again.
    pub fn told(&self, mut response: Response) -> Response {
        if let Some(desired) = &mut response.desired {
            match self.status.as_ref().map(serde_json::to_value) {
                Some(Ok(status)) => desired.status.insert("cost".to_owned(), status),
                _ => desired.status.remove("cost"),
            };
        }
        let mut conditions = response.conditions.iter_mut();
        if let Some(config) = conditions.find(|c| c.type_ == CONFIG_RESOLVED && c.holds) {
            let said = Some(config.message.clone()).filter(|message| !message.is_empty());
            let all: Vec<String> = said.into_iter().chain(self.notice.clone()).collect();
            config.message = all.join("; ");
        }
        let event = self.event();
        let is_told = |event: &Event| response.events.iter().any(|e| e.message == event.message);
        // While something else keeps it from running, that is the news.
        let message = response.desired.as_ref();
        let message = message.and_then(|d| d.status.get("message")?.as_str());
        let is_the_cause = matches!(self.verdict, Verdict::Short(_) | Verdict::Keep(_))
            || message == self.cause().map(|cause| cause.message.as_str());
        let event = event.filter(|event| is_the_cause && !is_told(event));
        response.events.extend(event);
        response.conditions.extend(self.condition.clone());
        if let Some(at) = self.next {
            let left = Duration::try_from(at.duration_since(self.now)).unwrap_or_default();
            response.ttl = response.ttl.min(left.div_f64(EARLY).max(budget::SOON));
        }
        if self.verdict.is_pending() {
            response.ttl = response.ttl.min(budget::SOON);
        }
        response
    }

    /// Why the budget keeps it from running.
    pub fn cause(&self) -> Option<&Cause> {
        match &self.verdict {
            Verdict::Wait(cause) => Some(cause),
            Verdict::Go | Verdict::Short(_) | Verdict::Keep(_) => None,
        }
    }

    /// What somebody should hear of, when they have not heard it.
    fn event(&self) -> Option<Event> {
        let condition = self.condition.as_ref().filter(|c| !c.holds)?;
        let is_told = self.told.as_deref() == Some(budget::EXCEEDED)
            || self.said.as_deref() == Some(&condition.message);
        let news = condition.reason == budget::EXCEEDED && !is_told;
        news.then(|| Event {
            severity: Severity::Warning,
            reason: budget::EXCEEDED,
            message: condition.message.clone(),
        })
    }
}
