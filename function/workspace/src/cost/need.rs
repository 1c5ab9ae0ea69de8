//! What a run may still cost: what a workspace asks of its owner's budget.

use api::cost::BudgetRequest;
use api::workspace::GpuDevWorkspaceStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cost::ledger::{BILLING_INTERVAL, Ledger, hours, last_tick, rounded, whole_seconds};
use crate::lifecycle::Step;
use crate::lifecycle::life::Life;

/// A run, as it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Whether it runs, and how long.
    pub life: &'a Life,
    /// The workspace's last status.
    pub previous: &'a GpuDevWorkspaceStatus,
    /// Whether something composed keeps machines running, or makes some.
    pub is_on: bool,
    /// Whether a machine runs.
    pub has_machine: bool,
    /// US dollars per hour at most; none where that is not known.
    pub hourly: Option<f64>,
    /// What it has cost.
    pub ledger: &'a Ledger,
    /// When the decision is made.
    pub now: Timestamp,
}

impl Run<'_> {
    /// The request; none where it asks for nothing.
    ///
    /// Reads of a workspace may be behind its last write. So a request is withdrawn only
    /// when the workspace was written down as stopped: whoever reads an older status goes
    /// on under the same request, and whoever reads this one begins with another.
    pub fn request(&self) -> Option<BudgetRequest> {
        let previous = self.previous.cost.as_ref();
        let previous = previous.and_then(|cost| cost.request.clone());
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

    /// From when on it counts what it needs: what is before is spent.
    fn counted_from(&self, made_at: Timestamp) -> Timestamp {
        let waiting = || last_tick(made_at, self.now);
        self.ledger.billed_until.unwrap_or_else(waiting)
    }

    /// When status or request change by themselves.
    pub fn next(&self, request: Option<&BudgetRequest>) -> Option<Timestamp> {
        let tick = |request: &BudgetRequest| {
            let Time(made_at) = request.made_at;
            let last = last_tick(made_at, self.now);
            last.saturating_add(BILLING_INTERVAL)
                .unwrap_or(Timestamp::MAX)
        };
        self.ledger.next().or_else(|| request.map(tick))
    }
}
