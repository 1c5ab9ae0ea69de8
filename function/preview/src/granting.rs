//! The decision of the owner's budget about a new workspace.

use std::collections::BTreeMap;

use api::cost::BudgetStatus;
use function_runtime::json::Json;
use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_users::{SETTLES, WORKSPACES};
use function_workspace::memory;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::calls::Decision;
use crate::outlook::Account;
use crate::platform::{DEV_USER_POLICY, Platform};
use crate::selection::selects;

/// The decision of the owner's budget about a new workspace.
pub(crate) struct Granting<'a, P> {
    pub(crate) platform: &'a P,
    pub(crate) kinds: Kinds,
    pub(crate) composite: &'a Value,
    pub(crate) first: &'a Decision,
}

impl<P: Platform> Granting<'_, P> {
    /// The `DevUser` after its budget has decided. An offer becomes a grant after a time.
    pub(crate) async fn grant(&self, mut user: Value, now: Timestamp) -> Result<Value, P::Error> {
        let mut request = Request {
            policy: self.platform.policy(DEV_USER_POLICY, &user),
            composite: Some(user.clone().into()),
            now,
            ..Request::default()
        };
        let response = self.kinds.render(&request);
        let mut counted = response.requirements.iter();
        let Some(counted) = counted.find(|requirement| requirement.name == WORKSPACES) else {
            return Ok(user);
        };
        let mut workspaces = self.platform.select(counted).await?;
        let new = match counted.kind {
            memory::KIND => self.record().into_values().next(),
            _ => Some(self.composite()),
        };
        // A workspace that exists counts as it would be.
        let name = |one: &Value| one.pointer("/metadata/name").cloned();
        let named = new.as_ref().and_then(name);
        workspaces.retain(|one| named.is_none() || name(one) != named);
        workspaces.extend(new.filter(|new| selects(counted, new)));
        // The function gets no list of homes here. Then it counts the homes of deleted workspaces as before.
        let workspaces = workspaces.into_iter().map(Json::from).collect();
        request.required = BTreeMap::from([(WORKSPACES.to_owned(), workspaces)]);
        for at in [now, settled(now)] {
            request.now = at;
            let decided = self.kinds.render(&request).desired.unwrap_or_default();
            let budget = decided.status.get("budget").cloned();
            user["status"]["budget"] = budget.unwrap_or_default();
            request.composite = Some(user.clone().into());
        }
        Ok(user)
    }

    /// The new composite with the status of the first decision.
    pub(crate) fn composite(&self) -> Value {
        let mut composite = self.composite.clone();
        let desired = self.first.response.desired.as_ref();
        let status = desired.map(|desired| desired.status.clone());
        composite["status"] = Value::Object(status.unwrap_or_default());
        composite
    }

    /// The record of the first decision; none for a workspace with a claim.
    pub(crate) fn record(&self) -> BTreeMap<String, Value> {
        let desired = self.first.response.desired.as_ref();
        let record = desired.and_then(|desired| desired.resources.get(memory::NAME));
        let record = record.map(|record| (memory::NAME.to_owned(), record.object.clone()));
        record.into_iter().collect()
    }
}

/// The budget of a `DevUser` before it decides about the workspace; none without a budget.
pub(crate) fn account(user: &Value, asked_usd: f64) -> Option<Account> {
    let monthly_usd = user.pointer("/spec/budget/monthlyUsd")?.as_f64()?;
    let status = user.pointer("/status/budget");
    let status = status.and_then(|budget| BudgetStatus::deserialize(budget).ok());
    let status = status.unwrap_or_default();
    Some(Account {
        monthly_usd,
        spent_usd: status.spent_usd,
        reserved_usd: status.reserved_usd,
        asked_usd,
        is_granted: false,
    })
}

/// The time at which an offer of `now` is a grant.
pub(crate) fn settled(now: Timestamp) -> Timestamp {
    now.saturating_add(SETTLES + SignedDuration::from_secs(1))
        .unwrap_or(now)
}
