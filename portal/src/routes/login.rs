//! Signing in and out.

use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use portal_core::origin;
use portal_core::problem::Problem;
use serde::Deserialize;
use tracing::info;

use crate::app::{Portal, SESSION, Shared, SignedIn, TOKEN, cookie};
use crate::oidc::Attempt;
use crate::refusal::Refusal;

/// How long an attempt to sign in may take, in seconds.
const ATTEMPT: u32 = 600;
/// The beginning of the name of an attempt's cookie. Each attempt has its own, so that two tabs may sign
/// in at the same time.
const ATTEMPT_COOKIE: &str = "__Host-attempt-";

/// Where the person wants to go.
#[derive(Deserialize)]
pub(crate) struct Wish {
    #[serde(rename = "returnTo")]
    return_to: Option<String>,
}

/// What the provider of identities sends back.
#[derive(Deserialize)]
pub(crate) struct Answer {
    #[serde(default)]
    state: String,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// `GET /login`: sends the person to the provider of identities.
pub(crate) async fn begin(State(portal): State<Shared>, Query(wish): Query<Wish>) -> Response {
    let return_to = origin::page(wish.return_to.as_deref()).to_owned();
    let (address, attempt) = match portal.provider.begin(return_to).await {
        Ok(begun) => begun,
        Err(error) => return refused(StatusCode::BAD_GATEWAY, &error.to_string()),
    };
    let Ok(kept) = serde_json::to_vec(&attempt) else {
        let problem = "the attempt cannot be written";
        return refused(StatusCode::INTERNAL_SERVER_ERROR, problem);
    };
    let name = attempt_cookie(&attempt.state);
    let value = URL_SAFE_NO_PAD.encode(kept);
    let set = set_cookie(&name, &value, Lasts::Seconds(ATTEMPT), Readable::ByTheHost);
    (
        StatusCode::SEE_OTHER,
        [(LOCATION, address), (SET_COOKIE, set)],
    )
        .into_response()
}

/// `GET /login/callback`: the person comes back from the provider of identities.
pub(crate) async fn end(
    State(portal): State<Shared>,
    headers: HeaderMap,
    Query(answer): Query<Answer>,
) -> Response {
    let name = attempt_cookie(&answer.state);
    match sign_in(&portal, &headers, &name, answer).await {
        Ok(signed_in) => {
            portal.metrics.login("SignedIn");
            signed_in
        }
        Err((status, problem)) => {
            portal.metrics.login("Refused");
            refused(status, &problem)
        }
    }
}

async fn sign_in(
    portal: &Portal,
    headers: &HeaderMap,
    name: &str,
    answer: Answer,
) -> Result<Response, (StatusCode, String)> {
    let forbidden = |problem: &dyn ToString| (StatusCode::FORBIDDEN, problem.to_string());
    let attempt = cookie(headers, name)
        .and_then(|value| URL_SAFE_NO_PAD.decode(value).ok())
        .and_then(|kept| serde_json::from_slice::<Attempt>(&kept).ok());
    let attempt = attempt.ok_or_else(|| {
        let problem = "this attempt to sign in is over, or was begun in another browser";
        (StatusCode::BAD_REQUEST, problem.to_owned())
    })?;
    let Some(code) = answer.code else {
        let error = answer.error.unwrap_or_default();
        return Err(forbidden(&answer.error_description.unwrap_or(error)));
    };
    let return_to = origin::page(Some(&attempt.return_to)).to_owned();
    let issuer = answer.iss.as_deref();
    let ended = portal
        .provider
        .end(attempt, &answer.state, issuer, code)
        .await;
    let told = ended.map_err(|error| forbidden(&error))?;
    let counts = |group: &str| portal.configuration.groups.counts(group);
    let person = portal.provider.mapping().person(&told.claims, counts);
    let person = person.map_err(|refused| forbidden(&refused))?;
    let now = Timestamp::now();
    let begun = portal.sessions.begin(person, told.renewal, now).await;
    let cookie = begun.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    let token = cookie.token().unwrap_or_default();
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, return_to)]).into_response();
    for set in [
        set_cookie(name, "", Lasts::Seconds(0), Readable::ByTheHost),
        set_cookie(
            SESSION,
            &cookie.value(),
            Lasts::Browser,
            Readable::ByTheHost,
        ),
        set_cookie(TOKEN, &token, Lasts::Browser, Readable::ByItsPages),
    ] {
        let value = HeaderValue::from_str(&set).map_err(|error| forbidden(&error))?;
        response.headers_mut().append(SET_COOKIE, value);
    }
    Ok(response)
}

/// `POST /logout`: ends the session, everywhere.
pub(crate) async fn leave(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let value = cookie(&headers, SESSION).unwrap_or_default();
    portal.sessions.end(value).await.map_err(|error| {
        let title = "The session cannot be ended";
        Problem::new(503, "unavailable", title, error.to_string())
    })?;
    info!(user = signed.person().user, "signed out");
    let set = set_cookie(SESSION, "", Lasts::Seconds(0), Readable::ByTheHost);
    let set = [(SET_COOKIE, set)];
    Ok((StatusCode::NO_CONTENT, set).into_response())
}

fn attempt_cookie(state: &str) -> String {
    let kept = state
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c));
    let short: String = kept.take(16).collect();
    format!("{ATTEMPT_COOKIE}{short}")
}

/// How long a browser keeps a cookie.
#[derive(Clone, Copy)]
enum Lasts {
    Seconds(u32),
    /// Until the browser ends.
    Browser,
}

/// Who reads a cookie.
#[derive(Clone, Copy)]
enum Readable {
    ByTheHost,
    ByItsPages,
}

fn set_cookie(name: &str, value: &str, lasts: Lasts, readable: Readable) -> String {
    let lasts = match lasts {
        Lasts::Seconds(seconds) => format!("; Max-Age={seconds}"),
        Lasts::Browser => String::new(),
    };
    let readable = match readable {
        Readable::ByTheHost => "; HttpOnly",
        Readable::ByItsPages => "",
    };
    format!("{name}={value}; Path=/; Secure; SameSite=Lax{lasts}{readable}")
}

/// A page that says why nobody is signed in.
fn refused(status: StatusCode, problem: &str) -> Response {
    info!(target: "audit", verb = "sign in", outcome = problem);
    let problem = escaped(problem);
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Not signed in</title>\
         <h1>You are not signed in</h1><p>{problem}</p><p><a href=/login>Try again</a></p></html>"
    );
    (status, Html(page)).into_response()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_is_text_on_the_page() {
        assert_eq!(
            escaped("<script>\"a\"&'b'\n"),
            "&lt;script&gt;&quot;a&quot;&amp;&#39;b&#39; "
        );
    }

    #[test]
    fn no_state_makes_another_cookie_than_one_of_an_attempt() {
        for state in [
            "a; Domain=evil",
            "a\r\nSet-Cookie: x",
            "../../x",
            &"a".repeat(999),
        ] {
            let name = attempt_cookie(state);
            assert!(name.len() <= ATTEMPT_COOKIE.len() + 16);
            let rest = name.strip_prefix(ATTEMPT_COOKIE).unwrap();
            assert!(
                rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "{name}"
            );
        }
    }
}
