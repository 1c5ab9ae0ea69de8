//! What the portal answers.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{self, HeaderMap};
use http::{HeaderName, HeaderValue};
use portal_core::problem::Problem;

use crate::app::Shared;
use crate::refusal::Refusal;
use crate::request::REQUEST_ID;

mod actions;
mod api;
mod assets;
mod claims;
mod creation;
mod login;
mod parameters;
mod plain;
mod preview;
mod stream;
mod v1;

/// The largest body of a request, in bytes.
const LARGEST: usize = 64 * 1024;
/// How long a body may take.
const BODY: Duration = Duration::from_secs(10);
/// Headers by which a proxy says who somebody is. The portal trusts no proxy.
const FOREIGN: [&str; 4] = [
    "impersonate-",
    "x-remote-",
    "x-forwarded-user",
    "x-forwarded-email",
];
/// What a page of the portal may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types portal";

/// All routes.
pub(crate) fn router(portal: Shared) -> Router {
    Router::new()
        .route("/login", get(login::begin))
        .route("/login/callback", get(login::end))
        .route("/logout", post(login::leave))
        .merge(api::router())
        .fallback(get(assets::asset))
        .layer(middleware::from_fn_with_state(portal.clone(), guarded))
        .with_state(portal)
}

/// Gives a request its id, refuses who pretends to be a proxy, and tells browsers what pages may do.
async fn guarded(State(portal): State<Shared>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut answer = match (foreign(request.headers()), id()) {
        (Some(name), _) => {
            let detail =
                format!("the header {name} says who somebody is: the portal trusts no proxy");
            let title = "A header is not allowed";
            Refusal::from(Problem::new(400, "header", title, detail)).into_response()
        }
        (None, None) => {
            let detail = "the system has no random numbers";
            Refusal::from(Problem::new(500, "internal", "The portal failed", detail))
                .into_response()
        }
        (None, Some(id)) => {
            request.headers_mut().insert(REQUEST_ID, id.clone());
            let mut answer = match whole(request).await {
                Ok(request) => next.run(request).await,
                Err(problem) => Refusal::from(problem).into_response(),
            };
            answer.headers_mut().insert(REQUEST_ID, id);
            answer
        }
    };
    let route = route.as_ref().map(MatchedPath::as_str);
    portal.metrics.answered(route, answer.status());
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            header::STRICT_TRANSPORT_SECURITY,
            "max-age=31536000; includeSubDomains",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What depends on the person is not kept by anybody. Assets say something else.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// A request whose body has arrived. A refusal that is sent before would close the connection, and the
/// browser would take that for a failure of the network.
async fn whole(request: Request) -> Result<Request, Problem> {
    let (mut head, body) = request.into_parts();
    let arrived = tokio::time::timeout(BODY, to_bytes(body, LARGEST)).await;
    let Ok(arrived) = arrived else {
        let detail = format!("the body did not arrive within {} seconds", BODY.as_secs());
        return Err(Problem::new(
            408,
            "timeout",
            "The request is too slow",
            detail,
        ));
    };
    let body = arrived.map_err(|_| {
        let detail = format!("the body has more than {LARGEST} bytes");
        Problem::new(413, "too-large", "The request is too large", detail)
    })?;
    head.headers
        .insert(header::CONTENT_LENGTH, body.len().into());
    Ok(Request::from_parts(head, Body::from(body)))
}

fn foreign(headers: &HeaderMap) -> Option<&HeaderName> {
    headers
        .keys()
        .find(|name| FOREIGN.iter().any(|start| name.as_str().starts_with(start)))
}

/// A random id of a request.
fn id() -> Option<HeaderValue> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    HeaderValue::from_str(&hex::encode(bytes)).ok()
}
