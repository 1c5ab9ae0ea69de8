//! What a claim would get that does not exist yet.
//!
//! The function decides about the claim's composite as Crossplane would ask for it. If a budget counts, the
//! function decides about the owner's `DevUser` with the new workspace as well, and then once more about the
//! workspace.

use std::collections::BTreeMap;
use std::future::Future;

use api::cost::{BudgetRequest, BudgetStatus};
use api::lifecycle::RunLimits;
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::kind::Kinds;
use function_runtime::object::Status;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response};
use function_users::{SETTLES, WORKSPACES};
use function_workspace::cost::budget;
use function_workspace::memory;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::calls::{Calls, Decision};
use crate::effect::{self, Effect};
use crate::price;
use crate::selection::{CLAIM_NAMESPACE, RESOURCE_NAME, selects};

/// The kinds of the function's inputs.
pub(crate) const WORKSPACE_POLICY: &str = "WorkspacePolicy";
pub(crate) const DEV_USER_POLICY: &str = "DevUserPolicy";

/// The platform as it is now.
pub trait Platform: Sync {
    /// Why the platform cannot be read.
    type Error: Send;

    /// The input of this kind in the Composition that Crossplane takes for an object; none if there is none.
    fn policy(&self, kind: &str, object: &Value) -> Option<Value>;

    /// The objects that a requirement selects. An object that nobody can read counts as one that does not exist.
    fn select(
        &self,
        requirement: &Requirement,
    ) -> impl Future<Output = Result<Vec<Value>, Self::Error>> + Send;
}

/// What a change of a claim would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The effect on the workspace.
    pub effect: Effect,
    /// Why, or what changes; empty if nothing does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it has a machine that runs or starts.
    pub is_on: bool,
    /// What the workspace would get.
    #[serde(flatten)]
    pub outlook: Outlook,
}

/// What a claim would get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outlook {
    /// The fields that are wrong or not allowed. Who shows them says where they are in what was sent.
    #[serde(skip)]
    pub errors: Vec<FieldError>,
    /// Why it would not start now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    /// What the platform says of it, although it is allowed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notice: String,
    /// The machines that it may get, the preferred one first.
    pub machines: Vec<Machine>,
    /// The region of EC2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The name of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The highest price in US dollars per hour, if the catalogue has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
    /// The highest cost in US dollars of a run until its longest time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_usd: Option<f64>,
    /// When it stops: after the longest run, or without use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunLimits>,
    /// The owner's budget, if one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Account>,
    /// What would be made.
    pub resources: Vec<Made>,
}

/// A field of the claim, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FieldError {
    /// The path of the field, for example `spec.parameters.instanceType`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why a workspace would not start now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Obstacle {
    /// The condition that says so.
    pub condition: String,
    /// The condition's reason.
    pub reason: String,
    /// The condition's message.
    pub message: String,
}

/// A machine that a workspace may get.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The instance type, or the flavor of pods.
    pub name: String,
    /// How many of them.
    pub count: u32,
    /// US dollars per hour of one, if the catalogue has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
}

/// The owner's budget of the month, before this workspace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// US dollars of the month.
    pub monthly_usd: f64,
    /// US dollars that are spent.
    pub spent_usd: f64,
    /// US dollars that running workspaces may still cost.
    pub reserved_usd: f64,
    /// US dollars for which this workspace would ask.
    pub asked_usd: f64,
    /// Whether the budget has them.
    pub is_granted: bool,
}

/// An object that Crossplane would make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// The kind of the object.
    pub kind: String,
    /// The name, if it does not follow from the composite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The composite that Crossplane would make of a claim. A claim of the configuration without claims is its own
/// composite.
pub fn composite(claim: &Value, has_claims: bool) -> Value {
    if !has_claims {
        return claim.clone();
    }
    let text = |pointer: &str| claim.pointer(pointer).and_then(Value::as_str);
    let namespace = text("/metadata/namespace").unwrap_or_default();
    let name = text("/metadata/name").unwrap_or_default();
    json!({
        "apiVersion": claim["apiVersion"],
        "kind": "GpuDevWorkspace",
        "metadata": {
            // Crossplane adds five random characters.
            "name": format!("{name}-new"),
            "uid": claim.pointer("/metadata/uid"),
            "annotations": claim.pointer("/metadata/annotations").cloned().unwrap_or(json!({})),
            "labels": {"crossplane.io/claim-name": name, CLAIM_NAMESPACE: namespace},
        },
        "spec": {
            "parameters": claim.pointer("/spec/parameters"),
            "claimRef": {
                "apiVersion": claim["apiVersion"], "kind": claim["kind"],
                "namespace": namespace, "name": name,
            },
        },
    })
}

/// What a composite would get, as of `now`. `observed` has its composed resources, by composition resource
/// name; none if it does not exist yet.
///
/// # Errors
///
/// The platform cannot be read.
pub async fn outlook<P: Platform>(
    platform: &P,
    kinds: Kinds,
    now: Timestamp,
    composite: &Value,
    observed: &BTreeMap<String, Value>,
) -> Result<Outlook, P::Error> {
    let policy = platform.policy(WORKSPACE_POLICY, composite);
    let request = Request {
        policy,
        composite: Some(composite.clone()),
        observed: observed.clone(),
        now,
        ..Request::default()
    };
    let first = decided(platform, kinds, request, None).await?;
    let Some(asked) = asked(&first.response) else {
        return Ok(Outlook::of(&first, None));
    };
    let Some(user) = owner(platform, &first.response).await? else {
        return Ok(Outlook::of(&first, None));
    };
    let granting = Granting {
        platform,
        kinds,
        composite,
        first: &first,
    };
    let before = account(&user, asked.usd);
    let user = granting.grant(user, now).await?;
    let request = Request {
        composite: Some(granting.composite()),
        observed: observed
            .clone()
            .into_iter()
            .chain(granting.record())
            .collect(),
        now: settled(now),
        ..first.request.clone()
    };
    let last = decided(platform, kinds, request, Some(&user)).await?;
    let within = condition(&last.response, api::condition::WITHIN_BUDGET);
    let is_granted = within.is_none_or(Condition::holds);
    let account = before.map(|before| Account {
        is_granted,
        ..before
    });
    let mut outlook = Outlook::of(&last, account);
    outlook.hourly_usd = outlook.hourly_usd.or(Some(asked.hourly_usd));
    Ok(outlook)
}

/// What another composite would get in the place of one that exists. `observed` has its composed resources.
///
/// # Errors
///
/// The platform cannot be read.
pub async fn change<P: Platform>(
    platform: &P,
    kinds: Kinds,
    now: Timestamp,
    (before, after): (&Value, &Value),
    observed: &BTreeMap<String, Value>,
) -> Result<Changed, P::Error> {
    let request = |composite: &Value| Request {
        policy: platform.policy(WORKSPACE_POLICY, composite),
        composite: Some(composite.clone()),
        observed: observed.clone(),
        now,
        ..Request::default()
    };
    let today = decided(platform, kinds, request(before), None).await?;
    let then = decided(platform, kinds, request(after), None).await?;
    let compared = effect::compare(observed, &today.response, &then.response);
    Ok(Changed {
        effect: compared.effect,
        message: compared.message,
        is_on: effect::is_on(observed),
        outlook: outlook(platform, kinds, now, after, observed).await?,
    })
}

/// The composed resources of a composite, by composition resource name.
pub fn observed(resources: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
    let named = resources.into_iter().filter_map(|resource| {
        let annotations = resource.pointer("/metadata/annotations");
        let name = annotations.and_then(|all| all.get(RESOURCE_NAME)?.as_str());
        Some((name?.to_owned(), resource))
    });
    named.collect()
}

/// Calls the function until it asks for nothing else. `user` replaces the owner's `DevUser`.
async fn decided<P: Platform>(
    platform: &P,
    kinds: Kinds,
    request: Request,
    user: Option<&Value>,
) -> Result<Decision, P::Error> {
    let mut calls = Calls::begin(kinds, request);
    loop {
        let mut required = BTreeMap::new();
        for requirement in calls.requirements().to_vec() {
            let found = match user.filter(|_| requirement.kind == "DevUser") {
                Some(user) => vec![user.clone()],
                None => platform.select(&requirement).await?,
            };
            required.insert(requirement.name, found);
        }
        if !calls.supply(required) {
            return Ok(calls.end());
        }
    }
}

/// The owner's `DevUser`.
async fn owner<P: Platform>(platform: &P, response: &Response) -> Result<Option<Value>, P::Error> {
    let owner = status(response).owner.unwrap_or_default();
    let found = platform.select(&budget::dev_user(&owner)).await?;
    Ok(found.into_iter().next())
}

/// The budget of a `DevUser` before it decides about the workspace; none without a budget.
fn account(user: &Value, asked_usd: f64) -> Option<Account> {
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

/// The decision of the owner's budget about a new workspace.
struct Granting<'a, P> {
    platform: &'a P,
    kinds: Kinds,
    composite: &'a Value,
    first: &'a Decision,
}

impl<P: Platform> Granting<'_, P> {
    /// The `DevUser` after its budget has decided. An offer becomes a grant after a time.
    async fn grant(&self, mut user: Value, now: Timestamp) -> Result<Value, P::Error> {
        let mut request = Request {
            policy: self.platform.policy(DEV_USER_POLICY, &user),
            composite: Some(user.clone()),
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
        // Nothing else is fetched: homes that nobody sees stay in the account.
        request.required = BTreeMap::from([(WORKSPACES.to_owned(), workspaces)]);
        for at in [now, settled(now)] {
            request.now = at;
            let decided = self.kinds.render(&request).desired.unwrap_or_default();
            let budget = decided.status.get("budget").cloned();
            user["status"]["budget"] = budget.unwrap_or_default();
            request.composite = Some(user.clone());
        }
        Ok(user)
    }

    /// The new composite with the status of the first decision.
    fn composite(&self) -> Value {
        let mut composite = self.composite.clone();
        let desired = self.first.response.desired.as_ref();
        let status = desired.map(|desired| desired.status.clone());
        composite["status"] = Value::Object(status.unwrap_or_default());
        composite
    }

    /// The record of the first decision; none for a workspace with a claim.
    fn record(&self) -> BTreeMap<String, Value> {
        let desired = self.first.response.desired.as_ref();
        let record = desired.and_then(|desired| desired.resources.get(memory::NAME));
        let record = record.map(|record| (memory::NAME.to_owned(), record.object.clone()));
        record.into_iter().collect()
    }
}

impl Outlook {
    fn of(decision: &Decision, budget: Option<Account>) -> Self {
        let response = &decision.response;
        let status = status(response);
        let config = condition(response, CONFIG_RESOLVED);
        let errors: Vec<FieldError> = response
            .violations
            .iter()
            .map(|violation| FieldError {
                path: violation.path.clone(),
                problem: violation.problem.clone(),
            })
            .collect();
        let machines = price::machines(decision);
        let within = condition(response, api::condition::WITHIN_BUDGET);
        // Without a machine to wait for, the condition says why there is none.
        let compute = condition(response, api::condition::COMPUTE_READY);
        let compute = compute.filter(|_| machines.is_empty());
        let obstacle = [config, within, compute]
            .into_iter()
            .flatten()
            .find(|condition| condition.status != Status::True)
            .filter(|_| errors.is_empty())
            .map(|condition| Obstacle {
                condition: condition.type_.to_owned(),
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            });
        let hourly_usd = price::highest(decision);
        let limits = status.lifecycle.and_then(|lifecycle| lifecycle.limits);
        let longest = limits.as_ref().and_then(longest);
        Self {
            errors,
            obstacle,
            notice: config
                .filter(|config| config.holds())
                .map(|config| config.message.clone())
                .unwrap_or_default(),
            machines,
            region: status.region,
            image: status.image.map(|image| image.name),
            hourly_usd,
            run_usd: hourly_usd.zip(longest).map(|(usd, hours)| usd * hours),
            limits,
            budget,
            resources: made(response),
        }
    }
}

/// The longest run in hours; none if it has no end.
fn longest(limits: &RunLimits) -> Option<f64> {
    let text = limits.max_lifetime.clone()?;
    let longest = api::duration::Duration::try_from(text).ok()?;
    Some(longest.length().as_secs_f64() / 3_600.0)
}

fn made(response: &Response) -> Vec<Made> {
    let desired = response.desired.iter();
    let objects = desired.flat_map(|desired| desired.resources.values());
    let text = |object: &Value, pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let mut made: Vec<Made> = objects
        .filter_map(|resource| {
            Some(Made {
                kind: text(&resource.object, "/kind")?,
                name: text(&resource.object, "/metadata/name"),
            })
        })
        .collect();
    made.sort_by(|one, other| (&one.kind, &one.name).cmp(&(&other.kind, &other.name)));
    made
}

fn status(response: &Response) -> GpuDevWorkspaceStatus {
    let desired = response.desired.as_ref();
    let status = desired.map(|desired| Value::Object(desired.status.clone()));
    let status = status.map(GpuDevWorkspaceStatus::deserialize);
    status.and_then(Result::ok).unwrap_or_default()
}

/// What the workspace asks of the owner's budget.
fn asked(response: &Response) -> Option<BudgetRequest> {
    status(response).internal?.budget_request
}

fn condition<'a>(response: &'a Response, type_: &str) -> Option<&'a Condition> {
    let mut conditions = response.conditions.iter();
    conditions.find(|condition| condition.type_ == type_)
}

/// The time at which an offer of `now` is a grant.
fn settled(now: Timestamp) -> Timestamp {
    now.saturating_add(SETTLES + SignedDuration::from_secs(1))
        .unwrap_or(now)
}
