//! A refusal as an answer.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use portal_core::problem::Problem;

/// A refusal in the versioned API: `application/problem+json`.
#[derive(Debug)]
pub(crate) struct Refusal(Problem);

/// A refusal in the first API: `{"error": …}`.
#[derive(Debug)]
pub(crate) struct Plain(Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Problem> for Plain {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Refusal> for Plain {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.0)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        answer(
            &self.0,
            "application/problem+json",
            &serde_json::json!(self.0),
        )
    }
}

impl IntoResponse for Plain {
    fn into_response(self) -> Response {
        answer(
            &self.0,
            "application/json",
            &serde_json::json!(self.0.plain()),
        )
    }
}

fn answer(problem: &Problem, media: &'static str, body: &serde_json::Value) -> Response {
    let status = StatusCode::from_u16(problem.status);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, body.to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if let Some(seconds) = problem.retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}
