//! What handlers ask of a request.

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HeaderName};
use portal_core::identity::Person;
use portal_core::origin::{self, Said};
use portal_core::problem::Problem;

/// The id of a request, which is also in the API server's audit log.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, from the first layer of all routes.
pub(crate) fn request_id(headers: &HeaderMap) -> &str {
    let id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    id.unwrap_or_default()
}

/// Refuses a request that writes, unless it comes from the portal's own page. The first layer of all routes has
/// written the length of the body into its header.
pub(crate) fn own(portal: &str, headers: &HeaderMap, token: &str) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said = Said {
        site: text("sec-fetch-site"),
        origin: text("origin"),
        content_type: text("content-type"),
        token: text("x-xsrf-token"),
    };
    let has_body = text(CONTENT_LENGTH.as_str()) != Some("0");
    origin::own(said, portal, token, has_body).map_err(|foreign| {
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
    person: &Person,
    request: &str,
    verb: &str,
    object: &str,
    problem: Option<&Problem>,
) {
    let user = person.user.as_str();
    let outcome = problem.map_or("done", |problem| problem.kind.as_str());
    tracing::info!(target: "audit", user, verb, object, outcome, request);
}
