//! Who is signed in: one Secret for each session, in the portal's own namespace.
//!
//! All replicas watch the Secrets. So each replica knows each session, and the deletion of a Secret ends its session
//! at all of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, RwLock};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt};
use openidconnect::RefreshToken;
use portal_core::identity::Person;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{oneshot, watch};
use tracing::{debug, info, warn};

use crate::configuration::SessionLimits;
use crate::following;
use crate::pace::Pace;
use crate::seal::Cookie;

pub(crate) use known::Look;
use known::{CHECKED, Sealed, USED};

mod cleaning;
mod known;
#[cfg(test)]
mod tests;

/// The label of the Secrets of sessions.
const LABEL: &str = "platform.acme.io/portal-session";
/// The key in a Secret.
const KEY: &str = "session";
/// The annotation with the end of a session.
const EXPIRES: &str = "platform.acme.io/expires";

/// A session.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Session {
    /// The person.
    pub(crate) person: Person,
    /// When it ends at the latest.
    pub(crate) expires: Timestamp,
    /// How the portal looks at the person's groups again; none if the provider of identities gives no way.
    #[serde(default)]
    pub(crate) renewal: Option<Renewal>,
}

/// How the portal looks at a person again.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Renewal {
    /// The token for the provider of identities.
    pub(crate) token: RefreshToken,
    /// Whom the provider of identities must name.
    pub(crate) subject: String,
}

/// A session of a request.
pub(crate) struct Current {
    /// The session.
    pub(crate) session: Session,
    /// The token that the portal's own page sends with each write; none for a program, which no browser sends by
    /// itself.
    pub(crate) own: Option<String>,
    /// Becomes true when the session is over.
    pub(crate) over: watch::Receiver<bool>,
    /// How much the session may do.
    pub(crate) pace: Arc<Pace>,
}

/// All sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    secrets: Api<Secret>,
    limits: SessionLimits,
    known: Arc<RwLock<HashMap<String, Sealed>>>,
}

/// Why a session cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the system has no random numbers")]
    Random,
    #[error("write the Secret of the session: {0}")]
    Write(#[from] kube::Error),
    #[error("write the session: {0}")]
    Encode(#[from] serde_json::Error),
}

impl Sessions {
    /// Follows the sessions of a namespace. Returns when those that exist are known.
    pub(crate) async fn follow(
        client: Client,
        namespace: &str,
        limits: SessionLimits,
    ) -> Result<Self, oneshot::error::RecvError> {
        let sessions = Self {
            secrets: Api::namespaced(client, namespace),
            limits,
            known: Arc::default(),
        };
        let config = Config::default().labels(LABEL);
        let (known, mut listed) = (sessions.clone(), HashSet::new());
        let take = move |event| match event {
            Event::Init => listed.clear(),
            Event::InitApply(secret) => {
                listed.insert(ResourceExt::name_any(&secret));
                known.take(secret);
            }
            Event::InitDone => known.keep(&listed),
            Event::Apply(secret) => known.take(secret),
            Event::Delete(secret) => known.remove(&secret.name_any()),
        };
        following::follow(sessions.secrets.clone(), config, "sessions", take).await?;
        tokio::spawn(sessions.clone().clean());
        Ok(sessions)
    }

    /// Begins a session of a person. Returns the cookie for the browser.
    pub(crate) async fn begin(
        &self,
        person: Person,
        renewal: Option<Renewal>,
        now: Timestamp,
    ) -> Result<Cookie, Error> {
        let cookie = Cookie::random().ok_or(Error::Random)?;
        let session = Session {
            person,
            expires: now + self.limits.longest(),
            renewal,
        };
        let contents = sealed(&cookie, &session)?;
        let times = [(EXPIRES, session.expires), (USED, now), (CHECKED, now)];
        let times = times.map(|(name, time)| (name.to_owned(), time.to_string()));
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(cookie.name()),
                labels: Some(BTreeMap::from([(LABEL.to_owned(), "true".to_owned())])),
                annotations: Some(BTreeMap::from(times)),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(KEY.to_owned(), ByteString(contents))])),
            ..Secret::default()
        };
        let made = self.secrets.create(&PostParams::default(), &secret).await?;
        // The watch tells it a moment later.
        self.take(made);
        info!(
            user = session.person.user,
            session = cookie.name(),
            "signed in"
        );
        Ok(cookie)
    }

    /// The session of a cookie, for a use or for a look; none if there is none, or if it is over.
    pub(crate) fn look(&self, cookie: &str, look: Look, now: Timestamp) -> Option<Current> {
        let cookie = Cookie::parse(cookie)?;
        let known = self.known.read().ok()?;
        let sealed = known.get(&cookie.name())?;
        let session: Session = serde_json::from_slice(&cookie.open(&sealed.contents)?).ok()?;
        if now >= session.expires || sealed.times.idle(now) > self.limits.unused() {
            return None;
        }
        if look == Look::Uses && sealed.times.uses(now, self.limits.uses_written_every()) {
            tokio::spawn(self.clone().write_use(cookie.name(), now));
        }
        Some(Current {
            session,
            own: Some(cookie.token()?),
            over: sealed.over.subscribe(),
            pace: Arc::clone(&sealed.pace),
        })
    }

    /// Whether this replica is to look at the person's groups now. Of several replicas one is: the one whose write
    /// of the annotation is the first after what all of them know.
    pub(crate) async fn begins_to_renew(&self, cookie: &str, now: Timestamp) -> bool {
        let Some(name) = Cookie::parse(cookie).map(|cookie| cookie.name()) else {
            return false;
        };
        let version = self.known.read().ok().and_then(|known| {
            let sealed = known.get(&name)?;
            let begins = sealed.times.begins_check(now, self.limits.groups_every());
            begins.then(|| sealed.version.to_string())
        });
        let Some(version) = version else {
            return false;
        };
        let patch = json!({"metadata": {
            "resourceVersion": version, "annotations": {CHECKED: now.to_string()},
        }});
        match self.patch(&name, &patch).await {
            Ok(()) => true,
            Err(error) => {
                // Another replica is faster, a use was written meanwhile, or the session is over.
                debug!(%error, name, "does not look at a person now");
                self.renews_soon(cookie, now);
                false
            }
        }
    }

    /// Looks at the person again soon, because the provider of identities did not answer.
    pub(crate) fn renews_soon(&self, cookie: &str, now: Timestamp) {
        if let (Some(cookie), Ok(known)) = (Cookie::parse(cookie), self.known.read())
            && let Some(sealed) = known.get(&cookie.name())
        {
            sealed.times.checks_soon(now, self.limits.groups_every());
        }
    }

    /// Writes what is new of a session. A session that has ended meanwhile stays so.
    pub(crate) async fn renew(&self, cookie: &str, session: &Session) -> Result<(), Error> {
        let Some(cookie) = Cookie::parse(cookie) else {
            return Ok(());
        };
        let contents = ByteString(sealed(&cookie, session)?);
        self.patch(&cookie.name(), &json!({"data": {KEY: contents}}))
            .await?;
        Ok(())
    }

    /// Ends the session of a cookie.
    pub(crate) async fn end(&self, cookie: &str) -> Result<(), Error> {
        let Some(cookie) = Cookie::parse(cookie) else {
            return Ok(());
        };
        let name = cookie.name();
        self.remove(&name);
        match self.secrets.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }

    async fn write_use(self, name: String, now: Timestamp) {
        let patch = json!({"metadata": {"annotations": {USED: now.to_string()}}});
        if let Err(error) = self.patch(&name, &patch).await {
            // The session may have ended. Otherwise the next use is written, too.
            warn!(%error, name, "cannot write that a session is used");
        }
    }

    async fn patch(&self, name: &str, patch: &serde_json::Value) -> Result<(), kube::Error> {
        let parameters = PatchParams::default();
        let patch = Patch::Merge(patch);
        let patched = self.secrets.patch(name, &parameters, &patch).await?;
        if let Ok(mut known) = self.known.write()
            && let Some(sealed) = known.get_mut(name)
        {
            // A session that ended meanwhile does not come back.
            learn(sealed, patched);
        }
        Ok(())
    }

    fn remove(&self, name: &str) {
        if let Ok(mut known) = self.known.write()
            && let Some(sealed) = known.remove(name)
        {
            sealed.over.send_replace(true);
        }
    }

    /// Takes over what a Secret has. The streams of a session that is known wait for its end as before.
    fn take(&self, secret: Secret) {
        if let Ok(mut known) = self.known.write() {
            let sealed = known.entry(secret.name_any());
            learn(sealed.or_insert_with(Sealed::new), secret);
        }
    }

    /// Ends the sessions whose Secrets went while nobody followed them.
    fn keep(&self, listed: &HashSet<String>) {
        let gone: Vec<String> = match self.known.read() {
            Ok(known) => {
                let names = known.keys().filter(|name| !listed.contains(*name));
                names.cloned().collect()
            }
            Err(_) => return,
        };
        for name in gone {
            self.remove(&name);
        }
    }
}

/// Takes over what a Secret has, unless something later is known.
fn learn(sealed: &mut Sealed, mut secret: Secret) {
    sealed.times.learn(&secret);
    let version = secret.resource_version();
    let version = version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0);
    let contents = secret.data.take().and_then(|mut data| data.remove(KEY));
    // Versions of one type may be compared (Kubernetes, "Resource versions").
    if version >= sealed.version
        && let Some(ByteString(contents)) = contents
    {
        sealed.version = version;
        sealed.contents = contents;
    }
}

fn sealed(cookie: &Cookie, session: &Session) -> Result<Vec<u8>, Error> {
    let contents = cookie.seal(&serde_json::to_vec(session)?);
    contents.ok_or(Error::Random)
}
