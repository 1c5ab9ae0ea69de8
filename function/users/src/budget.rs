//! Decides which runs of a user's workspaces fit into the user's monthly budget.
//!
//! Crossplane makes the calls for one `DevUser` one after the other. Every grant of a user is
//! decided here, so two workspaces that are reconciled at the same time never get the same money.
//!
//! Crossplane reads from a cache that may be stale. A stale workspace only delays the release of
//! its reservation. A stale `DevUser` could grant the same money twice, so a grant takes two steps:
//! the function writes an offer to status, and the offer becomes a grant after [`SETTLES`], which
//! is longer than the cache can lag.

use std::collections::{BTreeMap, BTreeSet};

use api::cost::{BudgetStatus, Grant, UserBudgetPolicy, WorkspaceKind};
use function_runtime::request::Request;
use function_runtime::requirement::{Requirement, Selector};
use function_workspace::cost::ledger::{
    BILLING_INTERVAL, USD_TOLERANCE, hours, rounded, whole_seconds,
};
use function_workspace::cost::month::Month;
use function_workspace::labels::API_VERSION;
use function_workspace::memory;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use kept::{Deleted, Kept};
use workspace::Workspace;

pub mod kept;
pub mod workspace;

/// The requirement for the user's workspaces.
pub const WORKSPACES: &str = "workspaces";
/// Time from an offer to a grant. Crossplane's cache never lags behind a write for longer than
/// this.
pub const SETTLES: SignedDuration = SignedDuration::from_secs(5);

/// The state of the budget that the last call wrote.
pub fn previous(request: &Request) -> Option<BudgetStatus> {
    let user = request.composite.as_ref()?;
    user.pointer("/status/budget")?.read().ok()
}

/// Asks Crossplane for the workspaces whose cost counts towards the budget.
pub fn requirement(policy: &UserBudgetPolicy, namespace: &str) -> Requirement {
    let (kind, in_namespace) = match policy.kind {
        WorkspaceKind::GpuDevWorkspace => (
            "GpuDevWorkspace",
            Selector::Claimed {
                namespace: namespace.to_owned(),
            },
        ),
        // Developers may write the status of a workspace without a claim, but not its record.
        WorkspaceKind::GpuDevWorkspaceClaim => (
            memory::KIND,
            Selector::Every {
                namespace: Some(namespace.to_owned()),
            },
        ),
    };
    Requirement {
        name: WORKSPACES.to_owned(),
        api_version: API_VERSION,
        kind,
        selector: if policy.everywhere {
            Selector::Every { namespace: None }
        } else {
            in_namespace
        },
    }
}

/// Decides which runs are granted, and returns the new budget status. `previous` is the status that
/// the last call wrote. Only workspaces of `namespace` count; none means every namespace.
pub fn decide(
    previous: Option<&BudgetStatus>,
    monthly: f64,
    workspaces: &[Workspace],
    deleted: &Deleted<'_>,
    namespace: Option<String>,
    now: Timestamp,
) -> BudgetStatus {
    let none = BudgetStatus::default();
    let previous = previous.unwrap_or(&none);
    let last: Option<Month> = previous.month.parse().ok();
    let of_workspaces = workspaces.iter().filter_map(Workspace::month);
    // Clocks differ between machines. A later month in status or in a workspace has begun.
    let month = of_workspaces.chain(last).fold(Month::of(now), Month::max);
    let book = Book {
        previous,
        is_same_month: last == Some(month),
        month,
        monthly,
        workspaces,
        now,
    };
    let kept = Kept::of(previous, workspaces, deleted, month, now);
    let gone = book.gone() + kept.ended_usd;
    let mut committed = gone + kept.of_month(month);
    let mut grants = BTreeMap::new();
    for workspace in workspaces {
        let grant = book.kept(workspace);
        let spent = workspace.spent(month);
        committed += grant.as_ref().map_or(spent, |grant| grant.usd.max(spent));
        committed += workspace.spent_on_homes(month) + workspace.homes_to_come(month);
        grants.extend(grant.map(|grant| (workspace.key.clone(), grant)));
    }
    let offers = book.offers(&grants, &mut committed);
    let accounts = workspaces
        .iter()
        .filter(|workspace| workspace.cost.is_some())
        .map(|workspace| (workspace.key.clone(), workspace.account(month)));
    let of_workspace = |w: &Workspace| w.spent(month) + w.spent_on_homes(month);
    let spent = gone + kept.spent(month, now) + workspaces.iter().map(of_workspace).sum::<f64>();
    BudgetStatus {
        month: month.to_string(),
        monthly_usd: monthly,
        spent_usd: rounded(spent),
        reserved_usd: rounded((committed - spent).max(0.0)),
        gone_usd: rounded(gone),
        namespace,
        workspaces: accounts.collect(),
        kept_homes: kept.homes,
        grants,
        offers,
    }
}

/// When the budget status can change next: the first offer becomes a grant, or the month ends.
pub fn next(status: &BudgetStatus) -> Option<Timestamp> {
    let offers = status.offers.values();
    let settled = offers.filter_map(|offer| {
        let Time(at) = offer.offered_at.as_ref()?;
        at.saturating_add(SETTLES).ok()
    });
    let month: Option<Month> = status.month.parse().ok();
    settled.chain(month.map(Month::end)).min()
}

/// The inputs of one decision.
#[derive(Clone, Copy)]
struct Book<'a> {
    previous: &'a BudgetStatus,
    is_same_month: bool,
    month: Month,
    monthly: f64,
    workspaces: &'a [Workspace],
    now: Timestamp,
}

impl Book<'_> {
    /// US dollars that deleted workspaces spent this month. A machine may run on after the last
    /// account of its workspace, so at most two billing intervals are added at its hourly price.
    fn gone(&self) -> f64 {
        if !self.is_same_month {
            return 0.0;
        }
        let there: BTreeSet<&str> = self.workspaces.iter().map(|w| w.uid.as_str()).collect();
        let accounts = self.previous.workspaces.values();
        let gone = accounts.filter(|account| !there.contains(account.uid.as_str()));
        let spent = gone.map(|account| {
            let since = account.billed_until.as_ref();
            let since = since.map_or(0.0, |Time(until)| hours(*until, self.now));
            let longest = 2.0 * BILLING_INTERVAL.as_secs_f64() / 3_600.0;
            account.usd + account.hourly_usd * since.min(longest)
        });
        self.previous.gone_usd + spent.sum::<f64>()
    }

    /// The grant that a workspace keeps. A granted run is never revoked. A workspace that runs
    /// without a grant started before its owner had a budget, so its request is granted.
    fn kept(&self, workspace: &Workspace) -> Option<Grant> {
        let wish = workspace.wish(self.month)?;
        let known = self.previous.workspaces.get(&workspace.key);
        let is_known = known.is_some_and(|account| account.uid == workspace.uid);
        let granted = self.settled(workspace);
        let granted = granted.or_else(|| self.previous.grants.get(&workspace.key).cloned());
        match granted.filter(|_| is_known) {
            None => workspace.runs().then_some(wish),
            Some(_) if !self.is_same_month && workspace.begins_anew() => {
                workspace.runs().then_some(wish)
            }
            Some(_) if !self.is_same_month => Some(wish),
            Some(grant) if wish.usd <= grant.usd + USD_TOLERANCE => Some(Grant {
                usd: wish.usd.min(grant.usd),
                ..wish
            }),
            granted => granted,
        }
    }

    /// The offer as a grant, once it is older than [`SETTLES`]. The offered amount counts even if
    /// the workspace asks for another amount now: an earlier call may already have granted the
    /// offer.
    fn settled(&self, workspace: &Workspace) -> Option<Grant> {
        let offer = self.previous.offers.get(&workspace.key)?;
        let Time(at) = offer.offered_at.as_ref()?;
        let is_settled = at.saturating_add(SETTLES).ok()? <= self.now;
        is_settled.then(|| Grant {
            offered_at: None,
            ..offer.clone()
        })
    }

    /// Offers for the requests that fit into the rest of the budget. Existing offers come first.
    /// Then come the other requests in the order in which they were made.
    fn offers(
        &self,
        grants: &BTreeMap<String, Grant>,
        committed: &mut f64,
    ) -> BTreeMap<String, Grant> {
        let wishes = self.workspaces.iter().filter_map(|workspace| {
            let wish = workspace.wish(self.month)?;
            let granted = grants.get(&workspace.key);
            let is_granted = granted
                .is_some_and(|g| g.made_at == wish.made_at && wish.usd <= g.usd + USD_TOLERANCE);
            (!is_granted).then_some((workspace, wish))
        });
        let mut wishes: Vec<_> = wishes
            .map(|(workspace, wish)| {
                let offered = self.offered(workspace, &wish);
                (offered, workspace, wish)
            })
            .collect();
        wishes.sort_by_key(|(offered, workspace, wish)| {
            let Time(made_at) = wish.made_at;
            (offered.is_none(), *offered, made_at, workspace.key.clone())
        });
        let mut offers = BTreeMap::new();
        for (offered, workspace, wish) in wishes {
            let key = workspace.key.clone();
            let spent = workspace.spent(self.month);
            let counted = grants.get(&key).map_or(spent, |grant| grant.usd.max(spent));
            let further = (wish.usd - counted).max(0.0);
            if *committed + further > self.monthly + USD_TOLERANCE / 1_000.0 {
                continue;
            }
            *committed += further;
            let at = offered.unwrap_or_else(|| whole_seconds(self.now));
            let offered_at = Some(Time(at));
            offers.insert(key, Grant { offered_at, ..wish });
        }
        offers
    }

    /// When the request was first offered; none if no offer of this month covers it.
    fn offered(&self, workspace: &Workspace, wish: &Grant) -> Option<Timestamp> {
        let offer = self.previous.offers.get(&workspace.key)?;
        let fits = offer.made_at == wish.made_at
            && (wish.usd <= offer.usd + USD_TOLERANCE && self.is_same_month);
        let Time(at) = offer.offered_at.as_ref().filter(|_| fits)?;
        Some(*at)
    }
}

#[cfg(test)]
mod tests;
