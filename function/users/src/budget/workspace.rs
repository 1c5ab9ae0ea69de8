//! A workspace as its owner's budget sees it.

use api::cost::{CostStatus, Grant, HomeCost, KeptHomes, WorkspaceAccount, WorkspaceKind};
use api::internal::InternalStatus;
use function_runtime::composite::Composite;
use function_runtime::json::Json;
use function_workspace::claim;
use function_workspace::cost::budget;
use function_workspace::cost::ledger::{hours, rounded};
use function_workspace::cost::month::Month;
use function_workspace::memory::Recorded;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A workspace and its cost, from the composite's status or from its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Workspace {
    /// Namespace and name of the composite: the workspace's key in the user's status.
    pub key: String,
    /// UID of the composite. A new workspace with the name of a deleted one has another UID.
    pub uid: String,
    /// `status.cost` of the composite; none before the function has written it.
    pub cost: Option<CostStatus>,
    /// What the function remembers of the workspace.
    pub memory: InternalStatus,
}

impl Workspace {
    /// Returns the workspaces of `owner` among the fetched composites or records, sorted by key.
    pub fn of(found: &[Json<'_>], kind: WorkspaceKind, owner: &str) -> Vec<Self> {
        let read = match kind {
            WorkspaceKind::GpuDevWorkspace => Self::of_composite,
            WorkspaceKind::GpuDevWorkspaceClaim => Self::of_record,
        };
        let mut workspaces: Vec<Self> = found.iter().filter_map(|one| read(one, owner)).collect();
        workspaces.sort_by(|a, b| a.key.cmp(&b.key));
        workspaces
    }

    fn of_composite(found: &Json<'_>, owner: &str) -> Option<Self> {
        let composite = Composite::new(found);
        let origin = composite.origin()?;
        (claim::recorded_owner(composite) == owner).then(|| {
            let status = claim::status(composite.at(&["status"]));
            Self {
                key: budget::key(&origin, composite.name()),
                uid: composite.id().uid,
                cost: status.cost,
                memory: status.internal.unwrap_or_default(),
            }
        })
    }

    fn of_record(found: &Json<'_>, owner: &str) -> Option<Self> {
        let recorded = Recorded::read(found);
        (recorded.owner == owner).then(|| Self {
            key: budget::key(&recorded.origin, &recorded.origin.name),
            uid: recorded.uid.to_owned(),
            cost: recorded.status.cost,
            memory: recorded.status.internal.unwrap_or_default(),
        })
    }

    pub fn month(&self) -> Option<Month> {
        self.cost.as_ref()?.month.parse().ok()
    }

    /// US dollars that the machines cost in the month.
    pub fn spent(&self, month: Month) -> f64 {
        let of_month = self.cost.as_ref().filter(|_| self.month() == Some(month));
        of_month.map_or(0.0, |cost| cost.so_far_usd)
    }

    pub fn homes(&self) -> Option<&HomeCost> {
        self.cost.as_ref()?.home.as_ref()
    }

    /// US dollars that the homes cost in the month.
    pub fn spent_on_homes(&self, month: Month) -> f64 {
        let of_month = self
            .homes()
            .filter(|home| home.month.parse().ok() == Some(month));
        of_month.map_or(0.0, |home| home.so_far_usd)
    }

    /// US dollars that the homes cost in the rest of the month, if they stay as they are. Homes
    /// cost money whether or not the workspace runs, so no run can use this money.
    pub fn homes_to_come(&self, month: Month) -> f64 {
        let billed = self
            .homes()
            .and_then(|home| Some((home.hourly_usd, self.homes_billed_until()?)));
        billed.map_or(0.0, |(hourly, Time(until))| {
            hourly * hours((*until).max(month.start()), month.end())
        })
    }

    /// The grant that the workspace asks for, including the amount that it has already spent. If
    /// the account is of an earlier month and the run has no end, the request is for the whole new
    /// month at the requested hourly price.
    pub fn wish(&self, month: Month) -> Option<Grant> {
        let request = self.memory.budget_request.as_ref()?;
        let is_old = self.month() < Some(month);
        let (usd, until) = if is_old && request.without_end {
            let whole = request.hourly_usd * hours(month.start(), month.end());
            (whole, Time(month.end()))
        } else {
            (request.usd, request.until.clone())
        };
        Some(Grant {
            made_at: request.made_at.clone(),
            usd: rounded(self.spent(month) + usd),
            hourly_usd: request.hourly_usd,
            until,
            offered_at: None,
        })
    }

    pub fn runs(&self) -> bool {
        let request = self.memory.budget_request.as_ref();
        request.is_some_and(|request| request.running)
    }

    /// Whether the run has no end, so that it needs the cost of a whole month in each new month.
    pub fn begins_anew(&self) -> bool {
        let request = self.memory.budget_request.as_ref();
        request.is_some_and(|request| request.without_end)
    }

    pub fn account(&self, month: Month) -> WorkspaceAccount {
        let counter = self.memory.machines.as_ref();
        let counter = counter.filter(|counter| counter.since.is_some());
        let running = self.cost.as_ref().filter(|_| counter.is_some());
        WorkspaceAccount {
            uid: self.uid.clone(),
            usd: rounded(self.spent(month) + self.spent_on_homes(month)),
            hourly_usd: running.map_or(0.0, |cost| cost.hourly_usd),
            billed_until: counter.and_then(|counter| counter.billed_until.clone()),
            kept_homes: self.kept_homes(),
        }
    }

    fn homes_billed_until(&self) -> Option<&Time> {
        self.memory.homes.as_ref()?.billed_until.as_ref()
    }

    /// The homes that stay when the workspace is deleted; none if they cost nothing.
    fn kept_homes(&self) -> Option<KeptHomes> {
        let cost = self.homes().filter(|cost| cost.kept_after_deletion)?;
        Some(KeptHomes {
            homes: cost.homes.clone(),
            hourly_usd: cost.hourly_usd,
            since: self.homes_billed_until()?.clone(),
        })
    }
}
