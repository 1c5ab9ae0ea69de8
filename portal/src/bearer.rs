//! People without a browser: their tokens, which the API server reviews.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use kube::api::PostParams;
use kube::{Api, Client};
use portal_core::identity::{Person, Refused};
use portal_core::problem::Problem;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tracing::warn;

use crate::oidc;
use crate::pace::Pace;
use crate::sessions::{Current, Session};

/// How long a review counts. A token that the API server refuses from now on is refused here after this time.
const COUNTS: Duration = Duration::from_mins(1);
/// How many tokens are known at the same time.
const KNOWN: usize = 1000;

/// The tokens that the API server has accepted.
pub(crate) struct Bearers {
    reviews: Api<TokenReview>,
    known: Mutex<HashMap<[u8; 32], Known>>,
}

struct Known {
    session: Session,
    pace: Arc<Pace>,
    /// It stays false: a person signs out of a browser's session, and not of a token.
    over: watch::Sender<bool>,
    until: Instant,
}

impl Bearers {
    /// The tokens that `client` may review.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            reviews: Api::all(client),
            known: Mutex::default(),
        }
    }

    /// The session of a token. `counts` says which groups count.
    pub(crate) async fn current(
        &self,
        token: &str,
        counts: impl Fn(&str) -> bool,
    ) -> Result<Current, Problem> {
        let digest = Sha256::digest(token).into();
        if let Some(current) = self.known(&digest) {
            return Ok(current);
        }
        let user = self.reviewed(token).await?;
        let name = user.username.unwrap_or_default();
        let groups = user.groups.unwrap_or_default();
        let person = Person::of_api_server(&name, &groups, counts).map_err(|why| refused(&why))?;
        let session = Session {
            person,
            expires: expiry(token).ok_or_else(Problem::signed_out)?,
            // The API server is asked for the person.
            renewal: None,
        };
        Ok(self.learned(digest, session))
    }

    /// What a review said of the same token before, with its pace.
    fn known(&self, digest: &[u8; 32]) -> Option<Current> {
        let known = self.known.lock().ok()?;
        let known = known.get(digest)?;
        let is_good = known.until > Instant::now() && known.session.expires > Timestamp::now();
        is_good.then(|| known.current())
    }

    fn learned(&self, digest: [u8; 32], session: Session) -> Current {
        let until = Instant::now() + COUNTS;
        let mut new = Known {
            session,
            pace: Arc::default(),
            over: watch::Sender::new(false),
            until,
        };
        let current = new.current();
        if let Ok(mut known) = self.known.lock() {
            if let Some(before) = known.remove(&digest) {
                // A review makes nobody faster.
                new.pace = before.pace;
            }
            if known.len() >= KNOWN {
                known.retain(|_, one| one.until > Instant::now());
            }
            if known.len() < KNOWN {
                let current = new.current();
                known.insert(digest, new);
                return current;
            }
        }
        current
    }

    /// The user of a token for the API server.
    async fn reviewed(&self, token: &str) -> Result<UserInfo, Problem> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let answer = self.reviews.create(&PostParams::default(), &review).await;
        let status = answer.map(|answer| answer.status).map_err(|error| {
            warn!(%error, "the API server reviewed no token");
            let detail = "the API server reviews no token now: try again";
            Problem::unavailable(detail)
        })?;
        let accepted = status.filter(|status| status.authenticated == Some(true));
        accepted
            .and_then(|status| status.user)
            .ok_or_else(Problem::signed_out)
    }
}

impl Known {
    fn current(&self) -> Current {
        Current {
            session: self.session.clone(),
            own: None,
            over: self.over.subscribe(),
            pace: Arc::clone(&self.pace),
        }
    }
}

/// When a token ends. The API server has checked the token, so its content is true.
fn expiry(token: &str) -> Option<Timestamp> {
    let claims = oidc::claims(token)?;
    Timestamp::from_second(claims.get("exp")?.as_i64()?).ok()
}

fn refused(why: &Refused) -> Problem {
    Problem::new(
        403,
        "no-person",
        "The token is no person's",
        why.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    #[test]
    fn a_token_ends_when_it_says() {
        let claims = URL_SAFE_NO_PAD.encode(br#"{"exp": 1700000000}"#);
        let ends = expiry(&format!("e30.{claims}.sig")).unwrap();
        assert_eq!(ends.as_second(), 1_700_000_000);
        for wrong in ["", "a", "a.b.c", "e30.e30.x"] {
            assert_eq!(expiry(wrong), None, "{wrong}");
        }
    }
}
