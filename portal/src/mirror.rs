//! All claims of the cluster, from one watch, and the ring of their changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::time::Duration;

use devctl_core::object::{Kind, version};
use futures::TryStreamExt;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, WatchParams};
use kube::core::WatchEvent;
use portal_core::problem::Problem;
use portal_core::ring::Ring;
use portal_core::view::{self, Row};
use portal_core::visible::Visible;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{oneshot, watch};
use tracing::{info, warn};

use crate::objects::Served;

/// How many changes the ring has.
const CHANGES: usize = 4096;
/// How many claims are listed at a time. All pages are of the same version of the claims (Kubernetes, "Retrieving
/// large results sets in chunks").
const PAGE: u32 = 250;
/// How long a request waits for changes that it knows of.
const CATCH_UP: Duration = Duration::from_secs(5);
/// How long the mirror waits before it asks again after an error: at first, and at most.
const WAIT: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(20)];

/// The claims as the API server told them last.
#[derive(Clone)]
pub(crate) struct Mirror {
    state: Arc<RwLock<State>>,
    head: watch::Sender<u64>,
}

/// The claims, and their changes.
pub(crate) struct State {
    claims: BTreeMap<Key, Claim>,
    /// The changes.
    pub(crate) ring: Ring,
}

/// The namespace and the name.
type Key = (String, String);

struct Claim {
    /// The claim as JSON. As values, it would take ten times the memory.
    whole: Box<str>,
    row: Row,
    /// The row of the first API, as JSON.
    plain: Box<RawValue>,
}

/// The mirror cannot be read: a thread failed while it changed it, or a claim is none.
#[derive(Debug, thiserror::Error)]
#[error("the mirror of the claims is broken")]
pub(crate) struct Broken;

impl From<Broken> for Problem {
    fn from(broken: Broken) -> Self {
        Self::new(500, "internal", "The portal failed", broken.to_string())
    }
}

impl Mirror {
    /// Follows all claims. Returns when those that exist are known.
    pub(crate) async fn follow(client: Client) -> Result<Self, oneshot::error::RecvError> {
        let mirror = Self {
            state: Arc::new(RwLock::new(State {
                claims: BTreeMap::new(),
                ring: Ring::new(0, CHANGES),
            })),
            head: watch::Sender::new(0),
        };
        let (ready, is_ready) = oneshot::channel();
        tokio::spawn(mirror.clone().run(client, ready));
        is_ready.await?;
        Ok(mirror)
    }

    /// The claims as they are now. Nobody waits while it is held.
    pub(crate) fn read(&self) -> Result<RwLockReadGuard<'_, State>, Broken> {
        self.state.read().map_err(|_| Broken)
    }

    /// Tells when something has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Waits until the changes up to a version were taken, for 5 seconds at most.
    pub(crate) async fn until(&self, version: u64) {
        let mut head = self.head.subscribe();
        let reached = head.wait_for(|head| *head >= version);
        // A mirror that stays behind is not waited for: it tells what it has.
        let _ = tokio::time::timeout(CATCH_UP, reached).await;
    }

    /// Waits until the mirror has this state of a claim. So the person who changed the claim finds the change in
    /// their next list.
    pub(crate) async fn has(&self, claim: &Value) {
        self.until(version(claim).parse().unwrap_or_default()).await;
    }

    async fn run(self, client: Client, ready: oneshot::Sender<()>) {
        let claims = Served::ours(Kind::Claim.kind(), Kind::Claim.plural()).everywhere(client);
        let mut ready = Some(ready);
        let [first, longest] = WAIT;
        let mut wait = first;
        loop {
            let listed = self.list(&claims).await;
            let followed = match listed {
                Ok(from) => {
                    if let Some(ready) = ready.take() {
                        // The portal may have been told to end meanwhile.
                        let _ = ready.send(());
                    }
                    wait = first;
                    self.watch(&claims, from).await
                }
                Err(error) => Err(error),
            };
            match followed {
                Ok(()) => info!("the API server has forgotten the version: listing again"),
                Err(error) => {
                    warn!(%error, "cannot follow the claims; trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(longest);
                }
            }
        }
    }

    /// Lists the claims. What has changed since the last list or watch goes into the ring, so open pages
    /// miss nothing.
    async fn list(&self, claims: &Api<DynamicObject>) -> Result<String, Error> {
        let mut known = Vec::new();
        let mut pages = ListParams::default().limit(PAGE);
        let from = loop {
            let page = claims.list(&pages).await?;
            for claim in page.items {
                known.push(Claim::new(&claim)?);
            }
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => pages = pages.continue_token(&next),
                None => break page.metadata.resource_version.unwrap_or_default(),
            }
        };
        let head = from.parse().unwrap_or_default();
        let mut state = self.state.write().map_err(|_| Broken)?;
        state.replace(known, head);
        self.head.send_replace(state.ring.head());
        Ok(from)
    }

    /// Takes changes until the API server ends the watch. Returns if it has forgotten the version.
    async fn watch(&self, claims: &Api<DynamicObject>, mut from: String) -> Result<(), Error> {
        loop {
            let events = claims.watch(&WatchParams::default(), &from).await?;
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.try_next().await? {
                let mut state = self.state.write().map_err(|_| Broken)?;
                match event {
                    WatchEvent::Added(claim) | WatchEvent::Modified(claim) => {
                        let claim = Claim::new(&claim)?;
                        from = claim.row.version.to_string();
                        state.put(claim);
                    }
                    WatchEvent::Deleted(claim) => {
                        let claim = Claim::new(&claim)?;
                        from = claim.row.version.to_string();
                        state.remove(&claim.key(), claim.row.version);
                    }
                    WatchEvent::Bookmark(bookmark) => {
                        from = bookmark.metadata.resource_version;
                        state.ring.advance(from.parse().unwrap_or_default());
                    }
                    WatchEvent::Error(status) if status.code == 410 => return Ok(()),
                    WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
                }
                self.head.send_replace(state.ring.head());
            }
        }
    }
}

/// Why the claims cannot be followed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("a claim cannot be read: {0}")]
    Claim(#[from] serde_json::Error),
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl State {
    /// The rows of the claims that a person sees.
    pub(crate) fn rows(&self, visible: &Visible) -> impl Iterator<Item = &Row> {
        self.visible(visible).map(|claim| &claim.row)
    }

    /// The same rows in the shape of the first API.
    pub(crate) fn plain(&self, visible: &Visible) -> impl Iterator<Item = &RawValue> {
        self.visible(visible).map(|claim| &*claim.plain)
    }

    fn visible(&self, visible: &Visible) -> impl Iterator<Item = &Claim> {
        let claims = self.claims.values();
        claims.filter(|claim| visible.has(&claim.row.namespace))
    }

    /// A claim.
    pub(crate) fn claim(&self, namespace: &str, name: &str) -> Result<Option<Value>, Broken> {
        let key = (namespace.to_owned(), name.to_owned());
        let found = self.claims.get(&key);
        let parsed = found.map(|claim| serde_json::from_str(&claim.whole));
        parsed.transpose().map_err(|_| Broken)
    }

    /// Takes a list of all claims as of a version. What differs from the claims that were known goes into
    /// the ring, in the order of versions.
    fn replace(&mut self, mut listed: Vec<Claim>, head: u64) {
        if self.ring.head() == 0 {
            // Nobody has an earlier version.
            self.ring = Ring::new(head, CHANGES);
            let claims = listed.into_iter().map(|claim| (claim.key(), claim));
            self.claims = claims.collect();
            return;
        }
        let names: BTreeSet<Key> = listed.iter().map(Claim::key).collect();
        let gone = self.claims.keys().filter(|key| !names.contains(key));
        let gone: Vec<Key> = gone.cloned().collect();
        listed.sort_by_key(|claim| claim.row.version);
        for claim in listed {
            self.put(claim);
        }
        for key in gone {
            self.remove(&key, head);
        }
        self.ring.advance(head);
    }

    fn put(&mut self, claim: Claim) {
        let known = self.claims.get(&claim.key());
        if known.is_some_and(|known| known.row.version == claim.row.version) {
            return;
        }
        self.ring.put(&claim.row);
        self.claims.insert(claim.key(), claim);
    }

    fn remove(&mut self, key: &Key, version: u64) {
        if self.claims.remove(key).is_some() {
            self.ring.gone(&key.0, &key.1, version);
        }
    }
}

impl Claim {
    fn new(claim: &DynamicObject) -> Result<Self, serde_json::Error> {
        let whole = view::without_managed_fields(serde_json::to_value(claim)?);
        Ok(Self {
            row: Row::new(&whole),
            plain: to_raw_value(&view::plain(&whole))?,
            whole: serde_json::to_string(&whole)?.into(),
        })
    }

    fn key(&self) -> Key {
        (self.row.namespace.clone(), self.row.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use portal_core::ring::{Resumed, Step};
    use serde_json::json;

    use super::*;

    fn claim(name: &str, version: u64) -> Claim {
        let claim = json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
            "metadata": {
                "namespace": "a", "name": name, "resourceVersion": version.to_string(),
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {},
        });
        Claim::new(&serde_json::from_value(claim).unwrap()).unwrap()
    }

    fn state() -> State {
        State {
            claims: BTreeMap::new(),
            ring: Ring::new(0, CHANGES),
        }
    }

    /// The messages after a version, as event and name.
    fn after(state: &State, version: u64) -> Vec<(String, String)> {
        let Resumed::At(mut cursor) = state.ring.resume(version) else {
            panic!("{:?}", state.ring.resume(version));
        };
        let mut messages = Vec::new();
        while let Step::Frame(frame) = state.ring.step(&mut cursor, &Visible::Everywhere) {
            let text = String::from_utf8(frame.to_vec()).unwrap();
            let line = |start: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(start));
                line.unwrap().to_owned()
            };
            let told: Value = serde_json::from_str(&line("data: ")).unwrap();
            messages.push((line("event: "), told["name"].as_str().unwrap().to_owned()));
        }
        messages
    }

    #[test]
    fn what_changed_while_the_api_server_was_away_reaches_open_pages() {
        let mut state = state();
        state.replace(vec![claim("x", 5), claim("y", 3), claim("z", 9)], 10);
        assert_eq!(after(&state, 10), []);
        // y changed twice, z is gone, a is new; the list is in the order of names.
        state.replace(vec![claim("a", 12), claim("x", 5), claim("y", 11)], 14);
        let told = |event: &str, name: &str| (event.to_owned(), name.to_owned());
        let expected = [told("put", "y"), told("put", "a"), told("gone", "z")];
        assert_eq!(after(&state, 10), expected);
        assert_eq!(after(&state, 11), expected[1..]);
        assert_eq!(after(&state, 14), []);
        assert_eq!(state.ring.resume(9), Resumed::TooOld);
    }

    #[test]
    fn a_claim_is_kept_without_what_nobody_reads() {
        let mut state = state();
        state.replace(vec![claim("x", 5)], 10);
        let kept = state.claim("a", "x").unwrap().unwrap();
        assert_eq!(kept.pointer("/metadata/name"), Some(&json!("x")));
        assert_eq!(kept.pointer("/metadata/managedFields"), None);
        assert_eq!(state.claim("b", "x").unwrap(), None);
        assert_eq!(state.rows(&Visible::only("b")).count(), 0);
        assert_eq!(state.rows(&Visible::only("a")).count(), 1);
        let plain: Vec<&str> = state
            .plain(&Visible::only("a"))
            .map(RawValue::get)
            .collect();
        assert_eq!(plain, [serde_json::to_string(&view::plain(&kept)).unwrap()]);
    }
}
