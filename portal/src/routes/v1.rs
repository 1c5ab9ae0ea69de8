//! The versioned API.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use devctl_core::object::version;
use devctl_core::workspace::Workspace;
use http::{HeaderMap, StatusCode};
use portal_core::account::Account;
use portal_core::problem::Problem;
use portal_core::view::{self, Row};
use portal_core::visible::Visible;
use portal_core::wish;
use serde_json::{Value, json};

use super::{audit, own, request_id};
use crate::app::{Portal, Shared, SignedIn};
use crate::cluster::AsPerson;
use crate::mirror::Broken;
use crate::refusal::Refusal;

/// `GET /api/v1/me`: who the person is, for Kubernetes and here.
pub(crate) async fn me(State(portal): State<Shared>, signed: SignedIn) -> Json<Value> {
    let session = &signed.0.session;
    let account = portal.people.account(&session.person);
    Json(json!({
        "user": session.person.user,
        "groups": session.person.groups,
        "email": session.person.email,
        "owner": account.as_ref().ok().map(|account| &account.owner),
        "namespace": account.as_ref().ok().map(|account| account.namespace.as_str()),
        "problem": account.as_ref().err().map(ToString::to_string),
        "expiresAt": session.expires,
    }))
}

/// `GET /api/v1/workspaces`: the rows of all workspaces that the person sees, and the version from which
/// `/api/v1/watch` goes on.
pub(crate) async fn list(
    State(portal): State<Shared>,
    signed: SignedIn,
) -> Result<Json<Value>, Refusal> {
    let visible = visible(&portal, &signed);
    let state = portal.mirror.read().map_err(broken)?;
    let rows: Vec<&Row> = state.visible(&visible).map(|(_, row)| row).collect();
    Ok(Json(json!({"version": state.ring.head(), "items": rows})))
}

/// `GET /api/v1/workspaces/NAMESPACE/NAME`: one workspace with its parameters and conditions.
pub(crate) async fn show(
    State(portal): State<Shared>,
    signed: SignedIn,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    let claim = &seen_claim(&portal, &signed, &namespace, &name)?;
    let part = |pointer: &str| claim.pointer(pointer).cloned().unwrap_or_default();
    let mut shown = json!(Row::new(claim));
    shown["parameters"] = view::parameters(claim).0;
    shown["conditions"] = part("/status/conditions");
    shown["lifecycle"] = part("/status/lifecycle");
    shown["activity"] = part("/status/activity");
    shown["cost"] = part("/status/cost");
    Ok(Json(shown))
}

/// `POST /api/v1/workspaces`: `{name, parameters}`.
pub(crate) async fn create(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    own(&portal, &headers, &signed.0.token, true)?;
    let account = signed.account(&portal)?;
    let claim = wish::workspace(&super::json(&body)?, &account)?;
    let created = created(&portal, &signed, &account, &headers, &claim).await?;
    Ok((StatusCode::CREATED, Json(json!(Row::new(&created)))))
}

/// `DELETE /api/v1/workspaces/NAMESPACE/NAME`.
pub(crate) async fn remove(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    own(&portal, &headers, &signed.0.token, false)?;
    let account = signed.account(&portal)?;
    removed(&portal, &signed, &account, &headers, &namespace, &name).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Creates a claim as the person. Returns it when the person's next list has it.
pub(super) async fn created(
    portal: &Portal,
    signed: &SignedIn,
    account: &Account,
    headers: &HeaderMap,
    claim: &Value,
) -> Result<Value, Problem> {
    let request = request_id(headers);
    let answer = AsPerson::new(&portal.client, account, request)
        .create(claim)
        .await;
    let object = Workspace::new(claim).reference().to_string();
    audit(signed, request, "create", &object, answer.as_ref().err());
    let mut created = answer?;
    portal
        .mirror
        .until(version(&created).parse().unwrap_or_default())
        .await;
    if let Some(metadata) = created.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok(created)
}

/// Deletes a claim as the person.
pub(super) async fn removed(
    portal: &Portal,
    signed: &SignedIn,
    account: &Account,
    headers: &HeaderMap,
    namespace: &str,
    name: &str,
) -> Result<(), Problem> {
    let claim = own_claim(portal, account, namespace, name)?;
    let workspace = Workspace::new(&claim);
    if workspace.is_from_git() {
        let detail = format!(
            "Argo CD keeps workspace {namespace}/{name} as it is in git, and would make it again: \
             remove its file from git"
        );
        return Err(managed_by_git(detail));
    }
    let uid = workspace.uid();
    let request = request_id(headers);
    let answer = AsPerson::new(&portal.client, account, request)
        .delete(name, uid)
        .await;
    let object = format!("workspace {namespace}/{name}");
    audit(signed, request, "delete", &object, answer.as_ref().err());
    answer
}

/// A claim that the person sees.
pub(super) fn seen_claim(
    portal: &Portal,
    signed: &SignedIn,
    namespace: &str,
    name: &str,
) -> Result<Value, Problem> {
    if !visible(portal, signed).has(namespace) {
        return Err(absent(namespace, name));
    }
    let state = portal.mirror.read().map_err(broken)?;
    let found = state.claim(namespace, name).cloned();
    found.ok_or_else(|| absent(namespace, name))
}

/// A claim that the person may change, as the mirror has it.
pub(super) fn own_claim(
    portal: &Portal,
    account: &Account,
    namespace: &str,
    name: &str,
) -> Result<Value, Problem> {
    if namespace != account.namespace.as_str() {
        return Err(absent(namespace, name));
    }
    let state = portal.mirror.read().map_err(broken)?;
    let found = state.claim(namespace, name).cloned();
    found.ok_or_else(|| absent(namespace, name))
}

/// A change that Argo CD would undo.
pub(super) fn managed_by_git(detail: String) -> Problem {
    Problem::new(409, "managed-by-git", "Git has this workspace", detail)
}

/// The claims that a person sees: those of the namespace of their account.
pub(super) fn visible(portal: &Portal, signed: &SignedIn) -> Visible {
    match portal.people.account(&signed.0.session.person) {
        Ok(account) => Visible::only(account.namespace.as_str()),
        Err(_) => Visible::nothing(),
    }
}

/// The mirror cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "it maps an error")]
pub(super) fn broken(broken: Broken) -> Problem {
    Problem::new(500, "internal", "The portal failed", broken.to_string())
}

fn absent(namespace: &str, name: &str) -> Problem {
    let detail = format!("workspace {namespace}/{name} does not exist, or you may not see it");
    Problem::new(404, "not-found", "Workspace not found", detail)
}
