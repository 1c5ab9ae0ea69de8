//! Stop, start and extension. They are annotations, so they work for claims from git, too.

use axum::extract::{Path, State};
use devctl_core::runs::{self, Needed, NotExtended, StoppedInGit};
use devctl_core::workspace::Workspace;
use http::{HeaderMap, StatusCode};
use jiff::{SignedDuration, Timestamp};
use portal_core::problem::Problem;
use portal_core::shape::Extension;
use portal_core::view::Row;
use serde_json::Value;

use super::claims;
use crate::app::{Shared, SignedIn};
use crate::cluster::AsPerson;
use crate::described::{Body, Named, Shaped};
use crate::refusal::Refusal;
use crate::request::{audit, request_id};

/// `POST /api/v1/workspaces/NAMESPACE/NAME/stop`.
pub(crate) async fn stop(
    portal: State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path(named): Path<Named>,
) -> Result<Shaped<Row>, Refusal> {
    let needed = |claim: &Value| Ok(runs::stop(claim, Timestamp::now()));
    act(&portal, &signed, &headers, &named, "stop", needed).await
}

/// `POST /api/v1/workspaces/NAMESPACE/NAME/start`.
pub(crate) async fn start(
    portal: State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path(named): Path<Named>,
) -> Result<Shaped<Row>, Refusal> {
    let needed = |claim: &Value| {
        runs::start(claim, Timestamp::now()).map_err(|StoppedInGit| {
            let detail = "the claim in git says Stopped, and Argo CD would undo a change of it here: \
                          commit state: Running";
            claims::managed_by_git(detail.to_owned())
        })
    };
    act(&portal, &signed, &headers, &named, "start", needed).await
}

/// `POST /api/v1/workspaces/NAMESPACE/NAME/extend`, with `{"by": "4h"}`.
pub(crate) async fn extend(
    portal: State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path(named): Path<Named>,
    body: Body<Extension>,
) -> Result<Shaped<Row>, Refusal> {
    let by = by(&body.0)?;
    let needed = |claim: &Value| {
        let extension = runs::extend(claim, by, Timestamp::now()).map_err(not_extended)?;
        Ok(Needed::Patch(extension.patch))
    };
    act(&portal, &signed, &headers, &named, "extend", needed).await
}

/// Writes what an action needs, as the person. Nothing is written if the workspace is so already.
async fn act(
    portal: &Shared,
    signed: &SignedIn,
    headers: &HeaderMap,
    Named { namespace, name }: &Named,
    action: &str,
    needed: impl FnOnce(&Value) -> Result<Needed, Problem>,
) -> Result<Shaped<Row>, Refusal> {
    let actor = signed.actor(portal).await?;
    let claim = claims::seen(portal, &actor.visible, namespace, name)?;
    let Needed::Patch(patch) = needed(&claim)? else {
        return Ok(Shaped::of(StatusCode::OK, &Row::new(&claim)));
    };
    let request = request_id(headers);
    let person = AsPerson::new(&portal.client, &actor.who, namespace, request);
    let answer = person.patch(name, &patch).await;
    let object = Workspace::new(&claim).reference().to_string();
    let problem = answer.as_ref().err();
    audit(signed.person(), request, action, &object, problem);
    let changed = answer?;
    portal.mirror.has(&changed).await;
    Ok(Shaped::of(StatusCode::ACCEPTED, &Row::new(&changed)))
}

/// The duration of an extension, from `{"by": "4h"}`.
fn by(body: &Value) -> Result<SignedDuration, Problem> {
    let wrong = || Problem::invalid("/by", "by: write a duration, for example 4h");
    let text = body.get("by").and_then(Value::as_str).ok_or_else(wrong)?;
    let by = api::duration::duration(text).filter(SignedDuration::is_positive);
    by.ok_or_else(wrong)
}

fn not_extended(why: NotExtended) -> Problem {
    let detail = match why {
        NotExtended::NotRunning => "the workspace does not run: start it first",
        NotExtended::Unlimited => "the run has no end that could be later",
        NotExtended::TooFar => "by: that is too far away",
    };
    Problem::new(409, "not-extended", "The run cannot be extended", detail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_extension_needs_a_duration() {
        assert_eq!(by(&json!({"by": "4h"})), Ok(SignedDuration::from_hours(4)));
        for body in [
            json!({}),
            json!({"by": 4}),
            json!({"by": ""}),
            json!({"by": "-4h"}),
            json!({"by": "0h"}),
        ] {
            assert_eq!(by(&body).unwrap_err().errors[0].pointer, "/by", "{body}");
        }
    }
}
