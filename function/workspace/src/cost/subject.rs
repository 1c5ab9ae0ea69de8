//! The input for the cost of a workspace, and the cost as status records it.

use api::catalogue::Prices;
use api::cost::{CostSource, CostStatus, HomeCost};
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::composite::Composite;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cost::ledger::{Ledger, hours, rounded};
use crate::cost::price::{Homes, Running};
use crate::lifecycle::Step;
use crate::lifecycle::life::Life;

/// The input for the cost of a workspace.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The observed composite.
    pub composite: Composite<'a>,
    /// The status that the last call wrote.
    pub previous: &'a GpuDevWorkspaceStatus,
    /// The catalogue's prices.
    pub prices: Option<&'a Prices>,
    /// The running machines and their price.
    pub running: Running,
    /// The homes that exist and their price.
    pub homes: &'a Homes,
    /// Whether a composed resource keeps machines running or creates them.
    pub is_on: bool,
    /// Highest price of the workspace in US dollars per hour, or the path of the missing price.
    pub highest: &'a Result<f64, String>,
    /// The time of the decision.
    pub now: Timestamp,
}

impl Subject<'_> {
    /// The cost to record in status; none for a workspace that has never cost anything.
    pub(super) fn status(
        self,
        ledger: &Ledger,
        homes: &Ledger,
        has_request: bool,
        life: &Life,
    ) -> Option<CostStatus> {
        let last = self.previous.cost.as_ref();
        let home = home(last.and_then(|last| last.home.as_ref()), homes, self.homes);
        if last.is_none() && ledger.since.is_none() && !has_request && home.is_none() {
            return None;
        }
        let as_of = self.prices.map(|prices| prices.as_of.clone());
        let source = match self.running {
            Running::Priced(_, source) => source,
            Running::Nothing | Running::Unpriced => {
                last.map_or(CostSource::Catalogue, |last| last.source)
            }
        };
        let stops_at = life.decision.status.as_ref();
        let stops_at = stops_at.and_then(|record| record.stops_at.as_ref());
        let end = ledger.month.end();
        let end = stops_at.map_or(end, |Time(at)| end.min(*at));
        let goes_on = life.decision.step == Step::Run;
        let left = ledger.billed_until.filter(|_| goes_on);
        let left = left.map_or(0.0, |until| hours(until, end));
        let so_far = ledger.so_far();
        Some(CostStatus {
            hourly_usd: ledger.hourly,
            so_far_usd: so_far,
            projected_usd: rounded(so_far + ledger.hourly * left),
            as_of: as_of.or(last.map(|last| last.as_of.clone()))?,
            source,
            month: ledger.month.to_string(),
            home,
        })
    }
}

/// The cost of the homes to record in status; none for homes that have never cost anything.
fn home(last: Option<&HomeCost>, ledger: &Ledger, homes: &Homes) -> Option<HomeCost> {
    if last.is_none() && ledger.since.is_none() {
        return None;
    }
    let (names, stay) = match homes {
        Homes::Known { names, stay, .. } => (names.clone(), *stay),
        Homes::Unknown => last.map_or((Vec::new(), false), |last| {
            (last.homes.clone(), last.kept_after_deletion)
        }),
    };
    Some(HomeCost {
        hourly_usd: ledger.hourly,
        so_far_usd: ledger.so_far(),
        month: ledger.month.to_string(),
        homes: names,
        kept_after_deletion: stay,
    })
}
