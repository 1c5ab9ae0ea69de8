//! What a claim would get, before anything exists.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use function_preview::outlook::{self, Outlook};
use http::HeaderMap;
use jiff::Timestamp;
use portal_core::problem::{Problem, Violation};
use portal_core::wish;
use serde_json::{Value, json};

use crate::app::{Portal, Shared, SignedIn};
use crate::cluster::AsPerson;
use crate::refusal::Refusal;
use crate::request::{document, request_id};
use crate::rights::Actor;

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
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let actor = signed.actor(&portal).await?;
    let wished = wish::workspace(&document(&body)?, actor.place());
    let tried = match wished {
        Ok(claim) => tried(&portal, &actor, &headers, &claim).await,
        Err(problem) => Err(problem),
    };
    match tried.map_err(Problem::of_body) {
        Ok(outlook) => Ok(Json(told(&outlook))),
        Err(problem) if !problem.errors.is_empty() => Ok(Json(json!({"errors": problem.errors}))),
        Err(problem) => Err(problem.into()),
    }
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
    let composite = outlook::composite(&claim, portal.platform.has_claims());
    let nothing = BTreeMap::new();
    let now = Timestamp::now();
    outlook::outlook(&portal.platform, portal.kinds, now, &composite, &nothing).await
}

/// The outlook with its errors at the fields of the body.
fn told(outlook: &Outlook) -> Value {
    let errors = outlook.errors.iter();
    let errors = errors.map(|error| Violation::of_field(&error.path, &*error.problem));
    let mut told = json!(outlook);
    told["errors"] = errors.map(|error| json!(error)).collect();
    told
}
