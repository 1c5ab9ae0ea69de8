//! The first API: three endpoints, as the first dashboard uses them.

use axum::extract::{Path, State};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use portal_core::problem::Problem;
use portal_core::shape::PlainWish;
use portal_core::view::PlainRow;
use portal_core::wish;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::creation::Creation;
use super::v1;
use crate::app::{Shared, SignedIn};
use crate::described::{Body, Shaped};
use crate::refusal::{Plain, Refusal};

/// The workspace of a path, in the person's own namespace.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NamedHere {
    /// The name of the claim.
    name: String,
}

/// `GET /api/workspaces`: the workspaces of the person.
pub(crate) async fn list(
    State(portal): State<Shared>,
    signed: Result<SignedIn, Refusal>,
) -> Result<Shaped<Vec<PlainRow>>, Plain> {
    // A person without an account is told so, and does not read an empty list.
    let actor = signed?.actor(&portal).await?;
    let state = portal.mirror.read().map_err(Problem::from)?;
    let rows: Vec<&RawValue> = state.plain(&actor.visible).collect();
    Ok(Shaped::of(StatusCode::OK, &rows))
}

/// `POST /api/workspaces`: `{owner, instanceType, opencvVersion}`.
pub(crate) async fn create(
    State(portal): State<Shared>,
    signed: Result<SignedIn, Refusal>,
    headers: HeaderMap,
    body: Result<Body<PlainWish>, Refusal>,
) -> Result<Shaped<Value>, Plain> {
    let signed = signed?;
    let actor = signed.actor(&portal).await?;
    let person = signed.person();
    let account = actor.own_account(person)?;
    let body = body?.0;
    let creation = Creation::of(&portal, &signed, &actor, &headers, &body)?;
    let now = Timestamp::now().as_millisecond().to_string();
    let suffix = creation.suffix().unwrap_or(&now);
    let claim = wish::plain(&body, person, account, suffix)?;
    let created = creation.unjudged(claim).await?;
    Ok(Shaped::of(StatusCode::ACCEPTED, &created))
}

/// `DELETE /api/workspaces/NAME`.
pub(crate) async fn remove(
    State(portal): State<Shared>,
    signed: Result<SignedIn, Refusal>,
    headers: HeaderMap,
    Path(NamedHere { name }): Path<NamedHere>,
) -> Result<StatusCode, Plain> {
    let signed = signed?;
    let actor = signed.actor(&portal).await?;
    let namespace = actor.own_account(signed.person())?.namespace.to_string();
    v1::removed(&portal, &signed, &actor, &headers, &namespace, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
