//! A browser with an open page. It asks and waits as `portal/web/src/stream/worker.ts` does in Chromium.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use serde::Deserialize;
use tokio::sync::watch;

use crate::Outcome;
use crate::connection::{Body, Server};
use crate::latency::State;
use crate::messages::{Message, Messages};
use crate::seen::{Clock, Numbers, Shared};

/// How long Chromium waits before it connects an `EventSource` again
/// (`EventSource::kDefaultReconnectDelay` in `third_party/blink/renderer/modules/eventsource`).
const RECONNECT: Duration = Duration::from_secs(3);
/// The longest time that a page waits before it lists after `reset`.
const JITTER: Duration = Duration::from_secs(1);

/// A browser.
pub(crate) struct Browser {
    pub(crate) server: Server,
    pub(crate) headers: HeaderMap,
    pub(crate) windows: [u32; 2],
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) clock: Clock,
    pub(crate) seen: Arc<Shared>,
    /// A page that stops reading when its stream has begun, until this is true.
    pub(crate) reads: Option<watch::Receiver<bool>>,
}

#[derive(Deserialize)]
struct Listed {
    version: u64,
    items: Vec<Named>,
}

/// A row, as far as it matters.
#[derive(Deserialize)]
struct Named {
    namespace: String,
    name: String,
    #[serde(default)]
    version: u64,
}

/// How a stream ended.
enum End {
    /// The network failed. The browser connects again by itself.
    Network,
    /// The portal refused.
    Refused,
    /// The page must list again.
    Reset,
    /// The session is over.
    Over,
}

impl Browser {
    /// Keeps the page open, until the session is over or the task is aborted.
    pub(crate) async fn stay(mut self) {
        let mut connection = None;
        let mut failures = 0;
        loop {
            let Ok(version) = self.list(&mut connection).await else {
                self.seen.lock().live = None;
                tokio::time::sleep(pause(failures)).await;
                failures += 1;
                continue;
            };
            failures = 0;
            match self.follow(&mut connection, version).await {
                End::Over => {
                    self.seen.lock().is_over = true;
                    return;
                }
                // Its stream is not of interest any more.
                End::Reset if self.reads.is_some() => return,
                End::Reset => tokio::time::sleep(JITTER.mul_f64(fastrand::f64())).await,
                End::Refused | End::Network => {
                    tokio::time::sleep(pause(failures)).await;
                    failures += 1;
                }
            }
        }
    }

    async fn list(&self, connection: &mut Option<SendRequest<Body>>) -> Outcome<u64> {
        let answer = self
            .get(connection, "/api/v1/workspaces", &self.headers)
            .await?;
        if answer.status() != StatusCode::OK {
            return Err(format!("the list: {}", answer.status()).into());
        }
        let body = answer.into_body().collect().await?.to_bytes();
        let listed: Listed = serde_json::from_slice(&body)?;
        let mut seen = self.seen.lock();
        for row in listed.items {
            if let Some(&claim) = self.numbers.get(&(row.namespace, row.name)) {
                seen.shown.insert(claim, row.version);
            }
        }
        Ok(listed.version)
    }

    /// An `EventSource` from a version on.
    async fn follow(&mut self, connection: &mut Option<SendRequest<Body>>, version: u64) -> End {
        let path = format!("/api/v1/watch?since={version}");
        let mut headers = self.headers.clone();
        headers.insert(
            "accept",
            http::HeaderValue::from_static("text/event-stream"),
        );
        loop {
            if let Ok(answer) = self.get(connection, &path, &headers).await {
                if answer.status() != StatusCode::OK {
                    return End::Refused;
                }
                let mut last = None;
                let end = self.read(answer.into_body(), &mut last).await;
                self.seen.lock().live = None;
                if !matches!(end, End::Network) {
                    return end;
                }
                if let Some(last) = last {
                    headers.insert("last-event-id", last.into());
                }
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }

    async fn read(&mut self, mut body: Incoming, last: &mut Option<u64>) -> End {
        let mut messages = Messages::default();
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            for message in messages.take(&bytes) {
                *last = message.version.or(*last);
                if let Some(end) = self.heard(&message) {
                    return end;
                }
            }
            if let Some(reads) = &mut self.reads {
                // Who would tell it is gone: then it reads.
                let _ = reads.wait_for(|reads| *reads).await;
            }
        }
        End::Network
    }

    fn heard(&self, message: &Message) -> Option<End> {
        let at = self.clock.now();
        let mut seen = self.seen.lock();
        match message.event.as_str() {
            "put" => {
                let row: Named = serde_json::from_str(&message.data).ok()?;
                let &claim = self.numbers.get(&(row.namespace, row.name))?;
                let version = message.version.unwrap_or(row.version);
                seen.states.push(State { claim, version, at });
                seen.shown.insert(claim, version);
                None
            }
            "session" if message.data.contains("\"ended\"") => Some(End::Over),
            "session" => {
                seen.live = Some(at);
                None
            }
            "reset" => {
                seen.resets += 1;
                Some(End::Reset)
            }
            _ => None,
        }
    }

    async fn get(
        &self,
        connection: &mut Option<SendRequest<Body>>,
        path: &str,
        headers: &HeaderMap,
    ) -> Outcome<http::Response<Incoming>> {
        let mut sender = match connection.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => self.server.http2(self.windows).await?,
        };
        sender.ready().await?;
        self.seen.lock().requests += 1;
        let answer = sender
            .send_request(self.server.request2(path, headers)?)
            .await?;
        *connection = Some(sender);
        Ok(answer)
    }
}

/// As `portal/web/src/stream/pause.ts`.
fn pause(failures: u32) -> Duration {
    let longest = Duration::from_secs(1 << failures.min(5)).min(Duration::from_secs(30));
    longest.mul_f64(0.5 + 0.5 * fastrand::f64())
}
