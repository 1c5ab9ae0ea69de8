//! Stop, start and extension. They are annotations, so they work for claims from git, too.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use devctl_core::runs::{self, Needed, NotExtended, StoppedInGit};
use devctl_core::workspace::Workspace;
use http::{HeaderMap, StatusCode};
use jiff::{SignedDuration, Timestamp};
use portal_core::problem::Problem;
use portal_core::view::Row;
use serde_json::{Value, json};

use super::v1;
use crate::app::{Shared, SignedIn};
use crate::cluster::AsPerson;
use crate::refusal::Refusal;
use crate::request::{audit, document, request_id};

/// `POST /api/v1/workspaces/NAMESPACE/NAME/ACTION`, with the action `stop`, `start` or `extend`. `extend` has a
/// body: `{"by": "4h"}`.
pub(crate) async fn act(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Path((namespace, name, action)): Path<(String, String, String)>,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    let actor = signed.actor(&portal).await?;
    let claim = v1::seen_claim(&portal, &actor.visible, &namespace, &name)?;
    let needed = needed(&action, &claim, &body, Timestamp::now())?;
    let Needed::Patch(patch) = needed else {
        return Ok((StatusCode::OK, Json(json!(Row::new(&claim)))));
    };
    let request = request_id(&headers);
    let person = AsPerson::new(&portal.client, &actor.who, &namespace, request);
    let answer = person.patch(&name, &patch).await;
    let object = Workspace::new(&claim).reference().to_string();
    let problem = answer.as_ref().err();
    audit(signed.person(), request, &action, &object, problem);
    let changed = answer?;
    portal.mirror.has(&changed).await;
    Ok((StatusCode::ACCEPTED, Json(json!(Row::new(&changed)))))
}

fn needed(action: &str, claim: &Value, body: &[u8], now: Timestamp) -> Result<Needed, Problem> {
    match action {
        "stop" => Ok(runs::stop(claim, now)),
        "start" => runs::start(claim, now).map_err(|StoppedInGit| {
            let detail = "the claim in git says Stopped, and Argo CD would undo a change of it here: \
                          commit state: Running";
            v1::managed_by_git(detail.to_owned())
        }),
        "extend" => {
            let by = by(&document(body)?)?;
            let extension = runs::extend(claim, by, now).map_err(not_extended)?;
            Ok(Needed::Patch(extension.patch))
        }
        other => {
            let detail = format!("there is no action {other}; there are stop, start and extend");
            Err(Problem::new(404, "not-found", "No such action", detail))
        }
    }
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

    #[test]
    fn an_action_that_does_not_exist_is_named() {
        let problem = needed("explode", &json!({}), b"", Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(problem.detail.contains("explode"));
        assert_eq!(problem.status, 404);
    }
}
