//! Stop, start and extension of a workspace, as patches of its claim.
//!
//! They are annotations, which Argo CD leaves alone. Each patch has the claim's UID, so it changes no other
//! claim of the same name.

use api::lifecycle::{EXTEND_UNTIL, RESUME, STOP};
use api::workspace::Phase;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::object::{annotation, text, version};
use crate::workspace::Workspace;

/// What a wish needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Needed {
    /// This patch (RFC 7386).
    Patch(Value),
    /// Nothing: it is so already.
    Nothing,
}

/// The claim in git says `Stopped`, and Argo CD would undo a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedInGit;

/// An extension that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Extension {
    /// The patch.
    pub patch: Value,
    /// The end of the run that it asks for.
    pub until: Timestamp,
}

/// Why no extension is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotExtended {
    /// The workspace does not run.
    NotRunning,
    /// The run has no longest duration.
    Unlimited,
    /// There is no such time.
    TooFar,
}

/// Stops a workspace.
pub fn stop(claim: &Value, now: Timestamp) -> Needed {
    match Workspace::new(claim).phase() {
        Some(Phase::Stopped | Phase::Expired) => Needed::Nothing,
        _ => Needed::Patch(annotated(claim, STOP, &stamp(claim, STOP, now))),
    }
}

/// Starts a workspace that stopped.
pub fn start(claim: &Value, now: Timestamp) -> Result<Needed, StoppedInGit> {
    let workspace = Workspace::new(claim);
    if text(claim, "/spec/parameters/lifecycle/state") == Some("Stopped") {
        if workspace.is_from_git() {
            return Err(StoppedInGit);
        }
        let mut patch = identified(claim);
        patch["spec"] = json!({"parameters": {"lifecycle": {"state": "Running"}}});
        return Ok(Needed::Patch(patch));
    }
    Ok(match workspace.phase() {
        Some(Phase::Stopped | Phase::Expired | Phase::Stopping) => {
            Needed::Patch(annotated(claim, RESUME, &stamp(claim, RESUME, now)))
        }
        _ => Needed::Nothing,
    })
}

/// Lets a workspace run longer than its run does now.
pub fn extend(claim: &Value, by: SignedDuration, now: Timestamp) -> Result<Extension, NotExtended> {
    let workspace = Workspace::new(claim);
    if !matches!(
        workspace.phase(),
        Some(Phase::Ready | Phase::Provisioning | Phase::Interrupted | Phase::Queued)
    ) {
        return Err(NotExtended::NotRunning);
    }
    let ends = workspace.run_ends_at().ok_or(NotExtended::Unlimited)?;
    let until = ends.max(now).checked_add(by);
    // Crossplane's function reads whole seconds.
    let wish = format!("{:.0}", until.map_err(|_| NotExtended::TooFar)?);
    let until = wish.parse().map_err(|_| NotExtended::TooFar)?;
    Ok(Extension {
        patch: annotated(claim, EXTEND_UNTIL, &wish),
        until,
    })
}

/// A new value for an annotation. It differs from the present value even if the clock stands still.
fn stamp(claim: &Value, key: &str, now: Timestamp) -> String {
    let now = now.to_string();
    match annotation(claim, key) {
        Some(old) if old == now => format!("{now} {}", version(claim)),
        _ => now,
    }
}

fn annotated(claim: &Value, key: &str, value: &str) -> Value {
    let mut patch = identified(claim);
    patch["metadata"]["annotations"] = json!({key: value});
    patch
}

fn identified(claim: &Value) -> Value {
    json!({"metadata": {"uid": text(claim, "/metadata/uid").unwrap_or_default()}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(phase: &str) -> Value {
        json!({
            "metadata": {"uid": "u-1", "resourceVersion": "7"},
            "status": {
                "phase": phase,
                "lifecycle": {
                    "startedAt": "2026-01-01T00:00:00Z",
                    "limits": {"maxLifetime": "10h"},
                },
            },
        })
    }

    fn now() -> Timestamp {
        "2026-01-01T01:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_workspace_is_stopped_once() {
        let patch = json!({"metadata": {"uid": "u-1", "annotations": {
            STOP: "2026-01-01T01:00:00Z",
        }}});
        assert_eq!(stop(&claim("Ready"), now()), Needed::Patch(patch));
        assert_eq!(stop(&claim("Stopped"), now()), Needed::Nothing);
        assert_eq!(stop(&claim("Expired"), now()), Needed::Nothing);
    }

    #[test]
    fn a_second_wish_in_the_same_moment_differs_from_the_first() {
        let mut again = claim("Ready");
        again["metadata"]["annotations"] = json!({STOP: "2026-01-01T01:00:00Z"});
        let Needed::Patch(patch) = stop(&again, now()) else {
            panic!("no patch");
        };
        assert_eq!(
            patch["metadata"]["annotations"][STOP],
            "2026-01-01T01:00:00Z 7"
        );
    }

    #[test]
    fn only_what_stopped_is_started() {
        assert_eq!(start(&claim("Ready"), now()), Ok(Needed::Nothing));
        let Ok(Needed::Patch(patch)) = start(&claim("Expired"), now()) else {
            panic!("no patch");
        };
        assert_eq!(
            patch["metadata"]["annotations"][RESUME],
            "2026-01-01T01:00:00Z"
        );
    }

    #[test]
    fn a_claim_that_says_stopped_is_changed_unless_git_says_it() {
        let mut stopped = claim("Stopped");
        stopped["spec"] = json!({"parameters": {"lifecycle": {"state": "Stopped"}}});
        let Ok(Needed::Patch(patch)) = start(&stopped, now()) else {
            panic!("no patch");
        };
        assert_eq!(
            patch,
            json!({
                "metadata": {"uid": "u-1"},
                "spec": {"parameters": {"lifecycle": {"state": "Running"}}},
            })
        );
        stopped["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": "team:x"});
        assert_eq!(start(&stopped, now()), Err(StoppedInGit));
    }

    #[test]
    fn an_extension_begins_at_the_end_of_the_run() {
        let extension = extend(&claim("Ready"), SignedDuration::from_hours(2), now()).unwrap();
        assert_eq!(extension.until.to_string(), "2026-01-01T12:00:00Z");
        assert_eq!(
            extension.patch["metadata"]["annotations"][EXTEND_UNTIL],
            "2026-01-01T12:00:00Z"
        );
    }

    #[test]
    fn what_has_no_end_or_does_not_run_is_not_extended() {
        let hour = SignedDuration::from_hours(1);
        assert_eq!(
            extend(&claim("Stopped"), hour, now()),
            Err(NotExtended::NotRunning)
        );
        let mut unlimited = claim("Ready");
        unlimited["status"]["lifecycle"] = json!({});
        assert_eq!(extend(&unlimited, hour, now()), Err(NotExtended::Unlimited));
        let far = extend(&claim("Ready"), SignedDuration::MAX, now());
        assert_eq!(far, Err(NotExtended::TooFar));
    }
}
