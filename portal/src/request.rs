//! What handlers ask of a request that writes.

use http::HeaderMap;
use portal_core::problem::Problem;

use crate::app::{REQUEST_ID, Shared, SignedIn};

/// The id of a request, from the first layer of all routes.
pub(crate) fn request_id(headers: &HeaderMap) -> &str {
    let id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    id.unwrap_or_default()
}

/// Refuses a request that writes, unless it comes from the portal's own page.
pub(crate) fn own(
    portal: &Shared,
    headers: &HeaderMap,
    token: &str,
    has_body: bool,
) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said = portal_core::origin::Said {
        site: text("sec-fetch-site"),
        origin: text("origin"),
        content_type: text("content-type"),
        token: text("x-xsrf-token"),
    };
    let checked = portal_core::origin::own(said, &portal.origin, token, has_body);
    checked.map_err(|foreign| {
        let title = "The request is not from the portal";
        Problem::new(403, "foreign", title, foreign.to_string())
    })
}

/// The body of a request as JSON.
pub(crate) fn document(body: &[u8]) -> Result<serde_json::Value, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let detail = format!("the body is no JSON: {error}");
        Problem::new(400, "invalid", "The body is wrong", detail)
    })
}

/// Writes who changed what, with the id that the API server's audit log has, too.
pub(crate) fn audit(
    signed: &SignedIn,
    request: &str,
    verb: &str,
    object: &str,
    problem: Option<&Problem>,
) {
    let user = signed.0.session.person.user.as_str();
    let outcome = problem.map_or("done", |problem| problem.kind.as_str());
    tracing::info!(target: "audit", user, verb, object, outcome, request);
}
