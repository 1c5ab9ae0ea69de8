//! The parameters of a claim, which several people may edit.

use axum::Json;
use axum::extract::{Path, State};
use devctl_core::object::version;
use devctl_core::workspace::Workspace;
use http::header::{ETAG, IF_MATCH};
use http::{HeaderMap, HeaderName};
use portal_core::problem::Problem;
use portal_core::shape::Patch;
use portal_core::view;
use serde_json::{Value, json};

use super::claims;
use crate::app::{Portal, Shared, SignedIn};
use crate::cluster::AsPerson;
use crate::described::{Body, Named};
use crate::refusal::Refusal;
use crate::request::{audit, request_id};
use crate::rights::Actor;

/// How often a change is tried if the status of the claim changes meanwhile.
const TRIES: usize = 5;

/// Parameters, with their `ETag`.
type Tagged = ([(HeaderName, String); 1], Json<Value>);

/// `GET /api/v1/workspaces/NAMESPACE/NAME/parameters`, with an `ETag`.
pub(crate) async fn show(
    State(portal): State<Shared>,
    signed: SignedIn,
    Path(Named { namespace, name }): Path<Named>,
) -> Result<Tagged, Refusal> {
    let visible = portal.rights.visible(signed.person()).await;
    let claim = claims::seen(&portal, &visible, &namespace, &name)?;
    let (parameters, tag) = view::parameters(&claim);
    Ok(([(ETAG, tag)], Json(parameters)))
}

/// `PATCH` of the same, a merge patch (RFC 7386). `If-Match` has the `ETag` of what was edited, so nobody
/// overwrites what somebody else changed meanwhile.
pub(crate) async fn change(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path(Named { namespace, name }): Path<Named>,
    body: Body<Patch>,
) -> Result<Tagged, Refusal> {
    let actor = signed.actor(&portal).await?;
    let patch = body.0;
    if !patch.is_object() {
        return Err(Problem::invalid("", "the body must be an object").into());
    }
    let tag = headers.get(IF_MATCH).and_then(|tag| tag.to_str().ok());
    let tag = tag.ok_or_else(|| {
        let detail = "send the ETag of what was edited in If-Match";
        Problem::new(428, "if-match", "If-Match is missing", detail)
    })?;
    let request = request_id(&headers);
    let changed = changed(&portal, &actor, request, (&namespace, &name), tag, &patch).await;
    let object = format!("workspace {namespace}/{name}");
    let problem = changed.as_ref().err();
    audit(signed.person(), request, "change", &object, problem);
    let (parameters, tag) = view::parameters(&changed.map_err(Problem::of_body)?);
    Ok(([(ETAG, tag)], Json(parameters)))
}

async fn changed(
    portal: &Portal,
    actor: &Actor,
    request: &str,
    (namespace, name): (&str, &str),
    tag: &str,
    patch: &Value,
) -> Result<Value, Problem> {
    let person = AsPerson::new(&portal.client, &actor.who, namespace, request);
    for _ in 0..TRIES {
        let claim = claims::seen(portal, &actor.visible, namespace, name)?;
        let workspace = Workspace::new(&claim);
        if workspace.is_from_git() {
            let detail = "Argo CD would undo a change of it here: change its file in git";
            return Err(claims::managed_by_git(detail.to_owned()));
        }
        if view::parameters(&claim).1 != tag {
            let title = "Somebody else changed it meanwhile";
            let detail = format!("workspace {namespace}/{name} is not as it was: look at it again");
            return Err(Problem::new(412, "changed", title, detail));
        }
        let known = version(&claim);
        let whole = json!({
            "metadata": {"uid": workspace.uid(), "resourceVersion": known},
            "spec": {"parameters": patch},
        });
        match person.patch(name, &whole).await {
            // The status has changed, or the claim itself: the mirror knows it in a moment.
            Err(problem) if problem.status == 409 => {
                let known: u64 = known.parse().unwrap_or_default();
                portal.mirror.until(known + 1).await;
            }
            Err(problem) => return Err(problem),
            Ok(changed) => {
                portal.mirror.has(&changed).await;
                return Ok(changed);
            }
        }
    }
    let detail = format!("workspace {namespace}/{name} changes all the time: try again");
    Err(Problem::new(
        409,
        "conflict",
        "Somebody else was faster",
        detail,
    ))
}
