//! The versioned API.

use api::cost::CostStatus;
use axum::Json;
use axum::extract::{Path, Query, State};
use devctl_core::object::{Kind, typed};
use devctl_core::workspace::Workspace;
use function_preview::menu::{Menu, menu};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use portal_core::offer::offers;
use portal_core::problem::Problem;
use portal_core::selection::{self, Page};
use portal_core::shape::{Budget, Catalogue, Listed, Me, NewWorkspace, Selection, Timeline, Whole};
use portal_core::timeline;
use portal_core::view::{self, Row};
use portal_core::wish;
use serde_json::{Value, json};

use super::claims;
use super::creation::Creation;
use crate::app::{Portal, Shared, SignedIn};
use crate::cluster::AsPerson;
use crate::described::{Body, Named, Shaped};
use crate::refusal::Refusal;
use crate::request::{audit, request_id};
use crate::rights::Actor;

/// `GET /api/v1/me`: who the person is, for Kubernetes and here.
pub(crate) async fn me(
    State(portal): State<Shared>,
    signed: SignedIn,
) -> Result<Json<Me>, Refusal> {
    let session = &signed.0.session;
    let account = portal.rights.account(&session.person).ok();
    let obstacle = portal.rights.obstacle(&session.person);
    Ok(Json(Me {
        user: session.person.user.clone(),
        groups: session.person.groups.clone(),
        email: session.person.email.clone(),
        owner: account.as_ref().map(|account| account.owner.clone()),
        namespace: account.map(|account| account.namespace.to_string()),
        problem: obstacle.map(|none| none.to_string()),
        expires_at: session.expires,
    }))
}

/// `GET /api/v1/catalogue`: what the platform offers, with prices.
pub(crate) async fn catalogue(
    State(portal): State<Shared>,
    _: SignedIn,
) -> Result<Json<Catalogue<Menu>>, Refusal> {
    // A claim that names no Composition gets the platform's.
    let claim = json!({"kind": Kind::Claim.kind()});
    let ec2 = menu(&portal.platform, Timestamp::now(), &claim).await?;
    let flavors = portal.platform.flavors.borrow();
    let offers = offers(flavors.values());
    Ok(Json(Catalogue { offers, ec2 }))
}

/// `GET /api/v1/workspaces`: the rows of all workspaces that the person sees, and the version from which
/// `/api/v1/watch` goes on.
pub(crate) async fn list(
    State(portal): State<Shared>,
    signed: SignedIn,
    Query(wanted): Query<Selection>,
) -> Result<Shaped<Listed>, Refusal> {
    let visible = portal.rights.visible(signed.person()).await;
    let state = portal.mirror.read().map_err(Problem::from)?;
    let Page { rows, next } = selection::page(state.rows(&visible), &wanted)?;
    let mut listed = json!({"version": state.ring.head(), "items": rows});
    if let Some(next) = next {
        listed["continue"] = next.into();
    }
    Ok(Shaped::of(StatusCode::OK, &listed))
}

/// `GET /api/v1/workspaces/NAMESPACE/NAME`: one workspace with its parameters and conditions.
pub(crate) async fn show(
    State(portal): State<Shared>,
    signed: SignedIn,
    Path(Named { namespace, name }): Path<Named>,
) -> Result<Json<Whole>, Refusal> {
    let visible = portal.rights.visible(signed.person()).await;
    let claim = &claims::seen(&portal, &visible, &namespace, &name)?;
    Ok(Json(Whole {
        row: Row::new(claim),
        parameters: view::parameters(claim).0,
        conditions: typed(claim, "/status/conditions"),
        lifecycle: typed(claim, "/status/lifecycle"),
        activity: typed(claim, "/status/activity"),
        cost: typed(claim, "/status/cost"),
    }))
}

/// `GET /api/v1/workspaces/NAMESPACE/NAME/timeline`: what has happened, as far as it is still known.
pub(crate) async fn timeline(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path(Named { namespace, name }): Path<Named>,
) -> Result<Json<Timeline>, Refusal> {
    let actor = signed.actor(&portal).await?;
    let claim = claims::seen(&portal, &actor.visible, &namespace, &name)?;
    let request = request_id(&headers);
    let person = AsPerson::new(&portal.client, &actor.who, &namespace, request);
    let (events, without_events) = match person.events(&name).await {
        Ok(events) => (events, None),
        Err(problem) => (Vec::new(), Some(problem.detail)),
    };
    Ok(Json(Timeline {
        entries: timeline::timeline(&claim, &events),
        without_events,
    }))
}

/// `GET /api/v1/workspaces/NAMESPACE/NAME/cost`: what it costs, as the claim says.
pub(crate) async fn cost(
    State(portal): State<Shared>,
    signed: SignedIn,
    Path(Named { namespace, name }): Path<Named>,
) -> Result<Json<Option<CostStatus>>, Refusal> {
    let visible = portal.rights.visible(signed.person()).await;
    let claim = claims::seen(&portal, &visible, &namespace, &name)?;
    Ok(Json(typed(&claim, "/status/cost")))
}

/// `GET /api/v1/budget`: the person's own budget of the month.
pub(crate) async fn budget(
    State(portal): State<Shared>,
    signed: SignedIn,
) -> Result<Json<Budget>, Refusal> {
    let account = portal.rights.account(signed.person());
    let owner = account
        .map_err(|none| Problem::no_account(none.to_string()))?
        .owner;
    let user = portal.platform.user(&owner).unwrap_or_default();
    let monthly_usd = user.pointer("/spec/budget/monthlyUsd");
    Ok(Json(Budget {
        monthly_usd: monthly_usd.and_then(Value::as_f64),
        status: typed(&user, "/status/budget"),
    }))
}

/// `POST /api/v1/workspaces`: `{name, parameters}`.
pub(crate) async fn create(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    body: Body<NewWorkspace>,
) -> Result<Shaped<Row>, Refusal> {
    let actor = signed.actor(&portal).await?;
    let creation = Creation::of(&portal, &signed, &actor, &headers, &body.0)?;
    let claim = wish::workspace(&body.0, actor.place())?;
    let created = creation.judged(claim).await.map_err(Problem::of_body)?;
    Ok(Shaped::of(StatusCode::CREATED, &Row::new(&created)))
}

/// `DELETE /api/v1/workspaces/NAMESPACE/NAME`.
pub(crate) async fn remove(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path(Named { namespace, name }): Path<Named>,
) -> Result<StatusCode, Refusal> {
    let actor = signed.actor(&portal).await?;
    removed(&portal, &signed, &actor, &headers, &namespace, &name).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Deletes a claim as the person.
pub(super) async fn removed(
    portal: &Portal,
    signed: &SignedIn,
    actor: &Actor,
    headers: &HeaderMap,
    namespace: &str,
    name: &str,
) -> Result<(), Problem> {
    let claim = claims::seen(portal, &actor.visible, namespace, name)?;
    let workspace = Workspace::new(&claim);
    if workspace.is_from_git() {
        let detail = format!(
            "Argo CD keeps workspace {namespace}/{name} as it is in git, and would make it again: \
             remove its file from git"
        );
        return Err(claims::managed_by_git(detail));
    }
    let uid = workspace.uid();
    let request = request_id(headers);
    let answer = AsPerson::new(&portal.client, &actor.who, namespace, request)
        .delete(name, uid)
        .await;
    let object = format!("workspace {namespace}/{name}");
    let problem = answer.as_ref().err();
    audit(signed.person(), request, "delete", &object, problem);
    portal.mirror.has(&answer?).await;
    Ok(())
}
