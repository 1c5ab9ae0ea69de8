//! What a claim would get, as the portal tells it to a person.

use api::cost::BudgetRequest;
use api::lifecycle::RunLimits;
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::json::Json;
use function_runtime::object::Status;
use function_runtime::response::{CONFIG_RESOLVED, Response};
use function_runtime::validation::Violation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calls::Decision;
use crate::effect::Effect;
use crate::price::{self, Machine};

/// What a change of a claim would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// Whether it is known what the workspace has now.
    #[serde(skip)]
    pub is_known: bool,
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
    pub errors: Vec<Violation>,
    /// The fields that are allowed, and yet keep it from starting now.
    #[serde(skip)]
    pub warnings: Vec<Violation>,
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

/// Why a workspace would not start now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Obstacle {
    /// The type of the condition that is not `True`.
    pub condition: String,
    /// The condition's reason.
    pub reason: String,
    /// The condition's message.
    pub message: String,
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

impl Outlook {
    /// What a decision gives.
    pub(crate) fn of(decision: &Decision, budget: Option<Account>) -> Self {
        let response = &decision.response;
        let status = status(response);
        let config = response.condition(CONFIG_RESOLVED);
        let errors = response.violations.clone();
        let machines = price::machines(decision);
        let within = response.condition(api::condition::WITHIN_BUDGET);
        // Without a machine to wait for, the condition says why there is none.
        let compute = response.condition(api::condition::COMPUTE_READY);
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
        let beyond = within.filter(|within| within.status != Status::True && errors.is_empty());
        let warnings = beyond.map(|beyond| Violation {
            path: costly(decision).to_owned(),
            problem: beyond.message.clone(),
        });
        let hourly_usd = price::highest(decision);
        let limits = status.lifecycle.and_then(|lifecycle| lifecycle.limits);
        let longest = limits.as_ref().and_then(longest);
        Self {
            errors,
            warnings: warnings.into_iter().collect(),
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

/// The field of a claim on which the price of its machine depends most.
fn costly(decision: &Decision) -> &'static str {
    let composite = decision.request.composite.as_ref();
    let placement = composite.and_then(|one| one.pointer("/spec/parameters/placement"));
    match placement.and_then(Json::as_str) {
        Some("Cluster") => "spec.parameters.flavor",
        _ => "spec.parameters.instanceType",
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

/// The desired status of a decision.
pub(crate) fn status(response: &Response) -> GpuDevWorkspaceStatus {
    let desired = response.desired.as_ref();
    let status = desired.map(|desired| Value::Object(desired.status.clone()));
    let status = status.map(GpuDevWorkspaceStatus::deserialize);
    status.and_then(Result::ok).unwrap_or_default()
}

/// What the workspace asks of the owner's budget.
pub(crate) fn asked(response: &Response) -> Option<BudgetRequest> {
    status(response).internal?.budget_request
}
