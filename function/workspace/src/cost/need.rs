//! The request of a workspace to its owner's budget: the remaining cost of its run.

use api::cost::BudgetRequest;
use api::workspace::GpuDevWorkspaceStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cost::ledger::{BILLING_INTERVAL, Ledger, hours, last_tick, rounded, whole_seconds};
use crate::lifecycle::Step;
use crate::lifecycle::life::Life;

/// The input for a request.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The decision whether the workspace runs, and for how long.
    pub life: &'a Life,
    /// The status that the last call wrote.
    pub previous: &'a GpuDevWorkspaceStatus,
    /// Whether a composed resource keeps machines running or creates them.
    pub is_on: bool,
    /// Whether a machine runs.
    pub has_machine: bool,
    /// Highest price in US dollars per hour; none if it is not known.
    pub hourly: Option<f64>,
    /// The cost so far.
    pub ledger: &'a Ledger,
    /// The time of the decision.
    pub now: Timestamp,
}

impl Run<'_> {
    /// The request; none if the workspace needs nothing from the budget.
    ///
    /// A read of the workspace may be stale. A request is therefore withdrawn only after status has
    /// recorded the stop. A call that reads an older status continues with the same request. A call
    /// that reads the new status makes a new request.
    pub fn request(&self) -> Option<BudgetRequest> {
        let previous = self.previous.internal.as_ref();
        let previous = previous.and_then(|memory| memory.budget_request.clone());
        let record = self.previous.lifecycle.as_ref();
        let was_stopped = record.is_some_and(|record| record.stopped_because.is_some());
        if self.life.decision.step != Step::Run {
            let is_over = was_stopped && !self.is_on && !self.has_machine;
            return previous.filter(|_| !is_over);
        }
        let Some(hourly) = self.hourly else {
            return previous.filter(|_| !was_stopped);
        };
        let goes_on = previous.filter(|_| !was_stopped);
        let Time(made_at) =
            goes_on.map_or(Time(whole_seconds(self.now)), |request| request.made_at);
        let from = self.counted_from(made_at);
        let end = self.life.ends_at(from);
        let until = end.unwrap_or(self.ledger.month.end());
        Some(BudgetRequest {
            made_at: Time(made_at),
            usd: rounded(hourly * hours(from, until)),
            hourly_usd: rounded(hourly),
            until: Time(until),
            without_end: end.is_none(),
            running: self.has_machine,
        })
    }

    /// The time from which the request counts. The cost before it is already spent.
    fn counted_from(&self, made_at: Timestamp) -> Timestamp {
        let waiting = || last_tick(made_at, self.now, BILLING_INTERVAL);
        self.ledger.billed_until.unwrap_or_else(waiting)
    }

    /// When status or request change next without a change of the workspace.
    pub fn next(&self, request: Option<&BudgetRequest>) -> Option<Timestamp> {
        let tick = |request: &BudgetRequest| {
            let Time(made_at) = request.made_at;
            let last = last_tick(made_at, self.now, BILLING_INTERVAL);
            last.saturating_add(BILLING_INTERVAL)
                .unwrap_or(Timestamp::MAX)
        };
        self.ledger.next().or_else(|| request.map(tick))
    }
}
