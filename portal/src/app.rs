//! What all requests share.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use function_runtime::kind::Kinds;
use http::Method;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap};
use http::request::Parts;
use jiff::Timestamp;
use kube::Client;
use portal_core::identity::Person;
use portal_core::problem::Problem;

use crate::bearer::Bearers;
use crate::configuration::Configuration;
use crate::metrics::Metrics;
use crate::mirror::Mirror;
use crate::oidc::Provider;
use crate::platform::Followed;
use crate::refusal::Refusal;
use crate::renewal::Renewals;
use crate::request;
use crate::rights::{Actor, Rights};
use crate::sessions::{Current, Look, Sessions};

/// The name of a session's cookie. Browsers take a cookie with this prefix from the host itself only, and
/// over TLS only (RFC 6265bis, "Cookie name prefixes").
pub(crate) const SESSION: &str = "__Host-session";
/// The name of the cookie with the token of a session, which the portal's own pages read.
pub(crate) const TOKEN: &str = "XSRF-TOKEN";
/// How the paths of previews end. They write nothing, but each costs a dry run.
const PREVIEW: &str = "/preview";
/// The portal.
pub(crate) struct Portal {
    /// What the platform team says.
    pub(crate) configuration: Configuration,
    /// The portal's origin.
    pub(crate) origin: String,
    /// The API server, as the portal itself.
    pub(crate) client: Client,
    /// The claims.
    pub(crate) mirror: Mirror,
    /// As whom the portal acts, and what people see.
    pub(crate) rights: Rights,
    /// Policies and catalogue.
    pub(crate) platform: Followed,
    /// What the function decides, with the platform's limits.
    pub(crate) kinds: Kinds,
    /// The provider of identities.
    pub(crate) provider: Provider,
    /// Programs with tokens; none if the platform does not let them in.
    pub(crate) bearers: Option<Bearers>,
    /// Who is signed in.
    pub(crate) sessions: Sessions,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
}

impl Portal {
    /// What a look at a person needs.
    pub(crate) fn renewals(&self) -> Renewals<'_> {
        Renewals {
            sessions: &self.sessions,
            provider: &self.provider,
            groups: &self.configuration.groups,
        }
    }
}

/// The portal, for handlers.
pub(crate) type Shared = Arc<Portal>;

/// A person who is signed in. A request that writes has come from the portal's own page, at a pace that is
/// allowed: there is no way to get one otherwise.
pub(crate) struct SignedIn(pub(crate) Current);

impl SignedIn {
    /// The person.
    pub(crate) fn person(&self) -> &Person {
        &self.0.session.person
    }

    /// The person as somebody who changes something.
    pub(crate) async fn actor(&self, portal: &Portal) -> Result<Actor, Problem> {
        portal.rights.actor(self.person()).await
    }
}

impl FromRequestParts<Shared> for SignedIn {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, portal: &Shared) -> Result<Self, Refusal> {
        let token = bearer(&parts.headers);
        let current = match (cookie(&parts.headers, SESSION), token, &portal.bearers) {
            (None, Some(token), Some(bearers)) => {
                let counts = |group: &str| portal.configuration.groups.counts(group);
                bearers.current(token, counts).await?
            }
            (Some(cookie), ..) => {
                let renewals = portal.renewals();
                let session = renewals.session(cookie, Look::Uses, Timestamp::now());
                session.await.ok_or_else(Problem::signed_out)?
            }
            _ => return Err(Problem::signed_out().into()),
        };
        let is_safe = parts.method.is_safe();
        let passed = match (is_safe, parts.uri.path()) {
            (true, _) => current.pace.read(),
            (false, path) if parts.method == Method::POST && path.ends_with(PREVIEW) => {
                current.pace.preview()
            }
            (false, _) => current.pace.write(),
        };
        passed.map_err(|wait| Problem::too_many("requests", wait.as_secs() + 1))?;
        if let Some(token) = current.own.as_deref().filter(|_| !is_safe) {
            request::own(&portal.origin, &parts.headers, token)?;
        }
        Ok(Self(current))
    }
}

/// The token of a program.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let sent = headers.get(AUTHORIZATION)?.to_str().ok()?;
    sent.strip_prefix("Bearer ")
}

/// The value of a cookie; none if it was sent twice, as a sibling domain could have set one of them.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(|(known, value)| (known == name).then_some(value));
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_that_was_sent_twice_is_nobodys() {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, "a=1; __Host-session=x; b=2".parse().unwrap());
        assert_eq!(cookie(&headers, SESSION), Some("x"));
        assert_eq!(cookie(&headers, "session"), None);
        headers.append(COOKIE, "__Host-session=y".parse().unwrap());
        assert_eq!(cookie(&headers, SESSION), None);
    }
}
