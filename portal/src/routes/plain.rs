//! The first API: three endpoints, as the first dashboard uses them.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use portal_core::problem::Problem;
use portal_core::wish;
use serde_json::value::RawValue;

use super::v1;
use crate::app::{Shared, SignedIn};
use crate::refusal::{Plain, Refusal};
use crate::request::document;

/// `GET /api/workspaces`: the workspaces of the person.
pub(crate) async fn list(
    State(portal): State<Shared>,
    signed: Result<SignedIn, Refusal>,
) -> Result<Response, Plain> {
    // A person without an account is told so, and does not read an empty list.
    let actor = signed?.actor(&portal).await?;
    let state = portal.mirror.read().map_err(Problem::from)?;
    let rows: Vec<&RawValue> = state.plain(&actor.visible).collect();
    Ok(Json(rows).into_response())
}

/// `POST /api/workspaces`: `{owner, instanceType, opencvVersion}`.
pub(crate) async fn create(
    State(portal): State<Shared>,
    signed: Result<SignedIn, Refusal>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<impl IntoResponse, Plain> {
    let signed = signed?;
    let actor = signed.actor(&portal).await?;
    let person = signed.person();
    let account = actor.own_account(person)?;
    let claim = wish::plain(&document(&body)?, person, account, Timestamp::now())?;
    let created = v1::created(&portal, &signed, &actor, &headers, &claim).await?;
    Ok((StatusCode::ACCEPTED, Json(created)))
}

/// `DELETE /api/workspaces/NAME`.
pub(crate) async fn remove(
    State(portal): State<Shared>,
    signed: Result<SignedIn, Refusal>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result<StatusCode, Plain> {
    let signed = signed?;
    let actor = signed.actor(&portal).await?;
    let namespace = actor.own_account(signed.person())?.namespace.to_string();
    v1::removed(&portal, &signed, &actor, &headers, &namespace, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
