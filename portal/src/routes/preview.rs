//! What a claim would get, before anything exists.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use function_preview::Effect;
use function_preview::outlook::Outlook;
use function_preview::wish as function;
use http::HeaderMap;
use jiff::Timestamp;
use portal_core::problem::{Problem, Violation};
use portal_core::shape::{NewWorkspace, Patch};
use portal_core::wish;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::claims;
use crate::app::{Portal, Shared, SignedIn};
use crate::cluster::AsPerson;
use crate::described::{Body, Named};
use crate::refusal::Refusal;
use crate::request::request_id;
use crate::rights::Actor;

/// What a claim or a change of it would get.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Forecast {
    /// The fields that are wrong or not allowed.
    errors: Vec<Violation>,
    /// The fields that are allowed, and yet keep the workspace from starting now. The owner's budget marks the one that
    /// says most about the cost.
    warnings: Vec<Violation>,
    /// What the workspace would get; none if Kubernetes itself refuses it.
    #[serde(flatten)]
    outlook: Option<Outlook>,
    /// What a change does to the machine.
    #[serde(flatten)]
    effect: Option<ChangeEffect>,
}

/// What a change does to the machine.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangeEffect {
    effect: Effect,
    /// Why, or what changes.
    effect_message: String,
    /// Whether a machine runs or starts.
    is_on: bool,
}

impl Forecast {
    fn of(outlook: Outlook) -> Self {
        Self {
            errors: violations(&outlook.errors),
            warnings: violations(&outlook.warnings),
            outlook: Some(outlook),
            effect: None,
        }
    }
}

/// `GET /api/v1/schemas/workspace`: the schema of the parameters, as the cluster has it.
pub(crate) async fn schema(
    State(portal): State<Shared>,
    _: SignedIn,
) -> Result<Json<Value>, Refusal> {
    let none = || {
        let detail = "the cluster has no definition of workspaces: install the configuration";
        Problem::new(503, "unavailable", "The platform is not installed", detail)
    };
    Ok(Json(portal.platform.schema().ok_or_else(none)?))
}

/// `POST /api/v1/preview`, with the body of a workspace that is to be created. The API server tries it as the person,
/// and the function decides about it.
pub(crate) async fn preview(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    body: Body<NewWorkspace>,
) -> Result<Json<Forecast>, Refusal> {
    let actor = signed.actor(&portal).await?;
    let wished = wish::workspace(&body.0, actor.place());
    let tried = match wished {
        Ok(claim) => tried(&portal, &actor, &headers, &claim).await,
        Err(problem) => Err(problem),
    };
    answered(tried.map(Forecast::of))
}

/// `POST /api/v1/workspaces/NAMESPACE/NAME/preview`, with the merge patch of a change.
pub(crate) async fn change(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path(Named { namespace, name }): Path<Named>,
    body: Body<Patch>,
) -> Result<Json<Forecast>, Refusal> {
    let actor = signed.actor(&portal).await?;
    let claim = claims::seen(&portal, &actor.visible, &namespace, &name)?;
    let patch = json!({"spec": {"parameters": body.0}});
    let who = &actor.who;
    let person = AsPerson::new(&portal.client, who, &namespace, request_id(&headers));
    answered(match person.try_to_patch(&name, &patch).await {
        Ok(after) => changed(&portal, &claim, &after).await,
        Err(problem) => Err(problem),
    })
}

async fn changed(portal: &Portal, claim: &Value, after: &Value) -> Result<Forecast, Problem> {
    let now = Timestamp::now();
    let Some((before, observed)) = portal.platform.composite(claim).await? else {
        return Ok(Forecast::of(decided(portal, after).await?));
    };
    let mut wanted = before.clone();
    wanted["spec"]["parameters"] = after["spec"]["parameters"].clone();
    let change = (&before, &wanted);
    let (platform, kinds) = (&portal.platform, portal.kinds);
    let changed = function::change(platform, kinds, now, change, &observed).await?;
    let effect = changed.is_known.then_some(ChangeEffect {
        effect: changed.effect,
        effect_message: changed.message,
        is_on: changed.is_on,
    });
    Ok(Forecast {
        effect,
        ..Forecast::of(changed.outlook)
    })
}

/// Refuses a claim that the person may not create, or that the platform does not allow. The policy may have
/// changed since the person read what the workspace would get.
pub(super) async fn judged(
    portal: &Portal,
    actor: &Actor,
    headers: &HeaderMap,
    claim: &Value,
) -> Result<(), Problem> {
    let outlook = tried(portal, actor, headers, claim).await?;
    if outlook.errors.is_empty() {
        return Ok(());
    }
    Err(Problem::of_policy(violations(&outlook.errors)))
}

async fn tried(
    portal: &Portal,
    actor: &Actor,
    headers: &HeaderMap,
    claim: &Value,
) -> Result<Outlook, Problem> {
    let namespace = claim["metadata"]["namespace"].as_str().unwrap_or_default();
    let person = AsPerson::new(&portal.client, &actor.who, namespace, request_id(headers));
    let claim = person.try_to_create(claim).await?;
    decided(portal, &claim).await
}

/// What the function decides about a claim without a composite.
async fn decided(portal: &Portal, claim: &Value) -> Result<Outlook, Problem> {
    let composite = function::composite(claim, portal.platform.has_claims());
    let (platform, now) = (&portal.platform, Timestamp::now());
    let nothing = BTreeMap::new();
    function::outlook(platform, portal.kinds, now, &composite, &nothing).await
}

/// A wrong field is an answer, and not a failure of the preview.
fn answered(tried: Result<Forecast, Problem>) -> Result<Json<Forecast>, Refusal> {
    match tried.map_err(Problem::of_body) {
        Ok(told) => Ok(Json(told)),
        Err(problem) if !problem.errors.is_empty() => Ok(Json(Forecast {
            errors: problem.errors,
            warnings: Vec::new(),
            outlook: None,
            effect: None,
        })),
        Err(problem) => Err(problem.into()),
    }
}

fn violations(found: &[function_runtime::validation::Violation]) -> Vec<Violation> {
    let found = found.iter();
    let found = found.map(|one| Violation::of_field(&one.path, &*one.problem));
    found.collect()
}
