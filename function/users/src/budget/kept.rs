//! Homes that outlive their workspaces. EC2 and Kubernetes bill them on, so they stay in the
//! budget until they are deleted or another workspace has them.

use std::collections::BTreeSet;

use api::cost::{BudgetStatus, KeptHomes};
use function_workspace::cost::ledger::{HOME_BILLING_INTERVAL, hours, last_tick};
use function_workspace::cost::month::Month;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::budget::workspace::Workspace;

/// What the function knows about deleted homes.
#[derive(Clone, Copy, Debug)]
pub struct Deleted<'a> {
    /// The homes that the `DevUser` lists as deleted.
    pub listed: &'a [String],
    /// The user's namespace.
    pub namespace: &'a str,
    /// The names of all `PersistentVolumeClaim`s in that namespace; none before Crossplane has
    /// fetched them.
    pub there: Option<&'a [String]>,
}

impl Deleted<'_> {
    /// Whether a home does not exist any more.
    fn has(&self, home: &str) -> bool {
        let name = home
            .strip_prefix(self.namespace)
            .and_then(|rest| rest.strip_prefix('/'));
        let is_missing = self
            .there
            .zip(name)
            .is_some_and(|(there, name)| there.iter().all(|one| one != name));
        is_missing || self.listed.iter().any(|one| one == home)
    }
}

/// The homes of deleted workspaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The homes that still cost money.
    pub homes: Vec<KeptHomes>,
    /// US dollars that homes cost in this month until they were deleted, or until another workspace
    /// had them. Only homes that the last call still counted.
    pub ended_usd: f64,
}

impl Kept {
    /// Reads the kept homes of the last call, and adds those of the workspaces that have
    /// disappeared since.
    pub fn of(
        previous: &BudgetStatus,
        workspaces: &[Workspace],
        deleted: &Deleted<'_>,
        month: Month,
        now: Timestamp,
    ) -> Self {
        let there: BTreeSet<&str> = workspaces.iter().map(|w| w.uid.as_str()).collect();
        let gone = previous.workspaces.values();
        let gone = gone.filter(|account| !there.contains(account.uid.as_str()));
        let new = gone.filter_map(|account| account.kept_homes.as_ref());
        let of_workspaces: BTreeSet<&str> = workspaces
            .iter()
            .filter_map(Workspace::homes)
            .flat_map(|cost| cost.homes.iter().map(String::as_str))
            .collect();
        let is_over = |home: &String| of_workspaces.contains(home.as_str()) || deleted.has(home);
        let (over, mut homes): (Vec<KeptHomes>, Vec<KeptHomes>) = previous
            .kept_homes
            .iter()
            .chain(new)
            .cloned()
            .partition(|kept| kept.homes.iter().all(is_over));
        homes.sort_by(|a, b| (a.since.0, &a.homes).cmp(&(b.since.0, &b.homes)));
        let ended = over
            .iter()
            .map(|kept| kept.hourly_usd * hours(begin(kept, month), now));
        Self {
            ended_usd: ended.sum(),
            homes,
        }
    }

    /// US dollars that the homes cost in the month. The amount grows once a day.
    pub fn spent(&self, month: Month, now: Timestamp) -> f64 {
        let counted = |kept: &KeptHomes| {
            let begin = begin(kept, month);
            kept.hourly_usd * hours(begin, last_tick(begin, now, HOME_BILLING_INTERVAL))
        };
        self.homes.iter().map(counted).sum()
    }

    /// US dollars that the homes cost in the month, if they stay until its end.
    pub fn of_month(&self, month: Month) -> f64 {
        let whole = |kept: &KeptHomes| kept.hourly_usd * hours(begin(kept, month), month.end());
        self.homes.iter().map(whole).sum()
    }
}

/// Since when kept homes count in the month.
fn begin(kept: &KeptHomes, month: Month) -> Timestamp {
    let Time(since) = kept.since;
    since.max(month.start())
}
