//! The stream of what a person may see: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use listening::metrics::Open;
use portal_core::identity::Person;
use portal_core::problem::Problem;
use portal_core::ring::{Cursor, Resumed, Step};
use portal_core::visible::Visible;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::app::{SESSION, Shared, SignedIn, cookie};
use crate::refusal::Refusal;
use crate::rights::Changes;
use crate::sessions::Look;

/// How often something is sent at least. Proxies keep the connection then, and a page that hears nothing for
/// longer knows that it is lost (`web/src/stream/worker.ts`).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often an open page looks whether its session lasts, and who the person is.
const LOOKING: Duration = Duration::from_secs(15);
/// How many bytes of messages are put together.
const BATCH: usize = 64 * 1024;

/// Where a page goes on.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct From {
    /// The version.
    #[serde(default)]
    since: u64,
}

/// `GET /api/v1/watch?since=VERSION`: changes after a version. A browser that connects again sends the
/// version of its last message in `Last-Event-ID`.
///
/// Messages: `put` (a row), `gone` (namespace and name), `reset` (list again), `session` (`ended`: it is
/// over, and connecting again does not help), `alive` (nothing has changed).
pub(crate) async fn watch(
    State(portal): State<Shared>,
    signed: SignedIn,
    headers: HeaderMap,
    Query(from): Query<From>,
) -> Result<Response, Refusal> {
    let place = signed.0.pace.stream();
    let place = place.ok_or_else(|| Problem::too_many("streams", 5))?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let since = last.and_then(|id| id.parse().ok()).unwrap_or(from.since);
    let rights = portal.rights.changes();
    let visible = portal.rights.visible(signed.person()).await;
    let page = Page {
        cookie: cookie(&headers, SESSION).map(str::to_owned),
        looks: Instant::now() + LOOKING,
        _open: (portal.metrics.stream(), place),
        changes: portal.mirror.changes(),
        rights,
        place: Place::Begin(since),
        portal,
        signed,
        visible,
    };
    let messages = stream::unfold(page, |mut page| async {
        let bytes = page.next().await?;
        Some((Ok::<_, Infallible>(bytes), page))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(messages)).into_response())
}

/// An open page.
struct Page {
    portal: Shared,
    signed: SignedIn,
    /// The cookie of the session; none for a program with a token.
    cookie: Option<String>,
    /// When the page looks at the session again.
    looks: Instant,
    visible: Visible,
    changes: watch::Receiver<u64>,
    rights: Changes,
    place: Place,
    /// Counts the page as long as it is open.
    _open: (Open, OwnedSemaphorePermit),
}

enum Place {
    /// Nothing was sent yet. The page has the changes up to this version.
    Begin(u64),
    /// It is in the ring.
    At(Cursor),
    /// It was told that the stream ends.
    End,
}

/// Why a page that waited goes on.
enum Woken {
    Claims,
    Rights,
    Looks,
    Over,
    Expired,
    Nothing,
}

impl Page {
    /// The next bytes; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        match self.place {
            Place::Begin(since) => Some(self.begin(since).await),
            Place::At(cursor) => Some(self.go_on(cursor).await),
            Place::End => None,
        }
    }

    async fn begin(&mut self, since: u64) -> Bytes {
        // The page may have its version from a replica that is ahead.
        self.portal.mirror.until(since).await;
        let resumed = match self.portal.mirror.read() {
            Ok(state) => state.ring.resume(since),
            Err(_) => Resumed::TooOld,
        };
        let Resumed::At(cursor) = resumed else {
            return self.reset();
        };
        self.place = Place::At(cursor);
        let told = json!({
            "serverTime": Timestamp::now(),
            "expiresAt": self.signed.0.session.expires,
        });
        Bytes::from(format!("event: session\ndata: {told}\n\n"))
    }

    async fn go_on(&mut self, mut cursor: Cursor) -> Bytes {
        let left = self
            .signed
            .0
            .session
            .expires
            .duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or_default();
        let end = Instant::now() + left;
        // What wakes the page without a message to send does not put it off.
        let alive = Instant::now() + KEEP_ALIVE;
        loop {
            self.changes.mark_unchanged();
            match self.batch(&mut cursor) {
                Some(bytes) if !bytes.is_empty() => {
                    self.place = Place::At(cursor);
                    return bytes;
                }
                Some(_) => {}
                None => return self.reset(),
            }
            let woken = tokio::select! {
                _ = self.changes.changed() => Woken::Claims,
                () = self.rights.next() => Woken::Rights,
                _ = self.signed.0.over.wait_for(|over| *over) => Woken::Over,
                () = tokio::time::sleep_until(end) => Woken::Expired,
                () = tokio::time::sleep_until(self.looks) => Woken::Looks,
                () = tokio::time::sleep_until(alive) => Woken::Nothing,
            };
            match woken {
                Woken::Claims => {}
                Woken::Rights => {
                    let person = self.signed.person();
                    if self.portal.rights.visible(person).await != self.visible {
                        return self.reset();
                    }
                }
                Woken::Looks => match self.look_again().await {
                    Some(person) if person != *self.signed.person() => return self.reset(),
                    Some(_) => {}
                    None => return self.end("Revoked"),
                },
                Woken::Over => return self.end("Revoked"),
                Woken::Expired => return self.end("Expired"),
                Woken::Nothing => {
                    self.place = Place::At(cursor);
                    return Bytes::from_static(b"event: alive\ndata: {}\n\n");
                }
            }
        }
    }

    /// The person of the session as it is now; none if it is over.
    async fn look_again(&mut self) -> Option<Person> {
        self.looks = Instant::now() + LOOKING;
        let Some(cookie) = &self.cookie else {
            return Some(self.signed.person().clone());
        };
        let now = Timestamp::now();
        let renewals = self.portal.renewals();
        let current = renewals.session(cookie, Look::Looks, now).await?;
        Some(current.session.person)
    }

    /// The messages that are ready; none if the page must list again.
    fn batch(&self, cursor: &mut Cursor) -> Option<Bytes> {
        let state = self.portal.mirror.read().ok()?;
        let mut bytes = Vec::new();
        while bytes.len() < BATCH {
            match state.ring.step(cursor, &self.visible) {
                Step::Frame(frame) => bytes.extend_from_slice(&frame),
                Step::Idle => break,
                Step::TooOld => return None,
            }
        }
        Some(bytes.into())
    }

    fn reset(&mut self) -> Bytes {
        self.place = Place::End;
        self.portal.metrics.ends("Reset");
        Bytes::from_static(b"event: reset\ndata: {}\n\n")
    }

    fn end(&mut self, why: &str) -> Bytes {
        self.place = Place::End;
        self.portal.metrics.ends(why);
        Bytes::from(format!(
            "event: session\ndata: {}\n\n",
            json!({"ended": why})
        ))
    }
}
