//! Who is signed in: one Secret for each session, in the portal's own namespace.
//!
//! All replicas watch the Secrets. So each replica knows each session, and the deletion of a Secret ends its session
//! at all of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use kube::core::ObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt};
use portal_core::identity::Person;
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};
use tracing::{info, warn};

use crate::following;
use crate::pace::Pace;
use crate::seal::Cookie;

/// The label of the Secrets of sessions.
const LABEL: &str = "platform.acme.io/portal-session";
/// The key in a Secret.
const KEY: &str = "session";
/// The annotation with the end of a session.
const EXPIRES: &str = "platform.acme.io/expires";
/// The longest session.
const LONGEST: SignedDuration = SignedDuration::from_hours(12);
/// How often the Secrets of sessions that are over are deleted.
const CLEANING: Duration = Duration::from_mins(10);

/// A session.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Session {
    /// The person.
    pub(crate) person: Person,
    /// When it ends at the latest.
    pub(crate) expires: Timestamp,
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
    known: Arc<RwLock<HashMap<String, Sealed>>>,
}

struct Sealed {
    contents: Vec<u8>,
    over: watch::Sender<bool>,
    pace: Arc<Pace>,
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
    ) -> Result<Self, oneshot::error::RecvError> {
        let sessions = Self {
            secrets: Api::namespaced(client, namespace),
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
    pub(crate) async fn begin(&self, person: Person, now: Timestamp) -> Result<Cookie, Error> {
        let cookie = Cookie::random().ok_or(Error::Random)?;
        let expires = now + LONGEST;
        let session = Session { person, expires };
        let contents = cookie.seal(&serde_json::to_vec(&session)?);
        let contents = contents.ok_or(Error::Random)?;
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(cookie.name()),
                labels: Some(BTreeMap::from([(LABEL.to_owned(), "true".to_owned())])),
                annotations: Some(BTreeMap::from([(EXPIRES.to_owned(), expires.to_string())])),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(
                KEY.to_owned(),
                ByteString(contents.clone()),
            )])),
            ..Secret::default()
        };
        self.secrets.create(&PostParams::default(), &secret).await?;
        // The watch tells it a moment later.
        self.put(cookie.name(), contents);
        info!(
            user = session.person.user,
            session = cookie.name(),
            "signed in"
        );
        Ok(cookie)
    }

    /// The session of a cookie; none if there is none, or if it is over.
    pub(crate) fn current(&self, cookie: &str, now: Timestamp) -> Option<Current> {
        let cookie = Cookie::parse(cookie)?;
        let known = self.known.read().ok()?;
        let sealed = known.get(&cookie.name())?;
        let session: Session = serde_json::from_slice(&cookie.open(&sealed.contents)?).ok()?;
        (now < session.expires).then_some(Current {
            session,
            own: Some(cookie.token()?),
            over: sealed.over.subscribe(),
            pace: Arc::clone(&sealed.pace),
        })
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

    fn put(&self, name: String, contents: Vec<u8>) {
        let Ok(mut known) = self.known.write() else {
            return;
        };
        // A session never changes. A second entry would lose the streams that wait for the end of the first.
        known.entry(name).or_insert_with(|| Sealed {
            contents,
            over: watch::Sender::new(false),
            pace: Arc::default(),
        });
    }

    fn remove(&self, name: &str) {
        if let Ok(mut known) = self.known.write()
            && let Some(sealed) = known.remove(name)
        {
            sealed.over.send_replace(true);
        }
    }

    fn take(&self, secret: Secret) {
        let name = secret.name_any();
        let contents = secret.data.and_then(|mut data| data.remove(KEY));
        if let Some(ByteString(contents)) = contents {
            self.put(name, contents);
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

    /// Deletes the Secrets of sessions that are over.
    async fn clean(self) {
        let mut due = tokio::time::interval(CLEANING);
        loop {
            due.tick().await;
            let parameters = kube::api::ListParams::default().labels(LABEL);
            let secrets = match self.secrets.list_metadata(&parameters).await {
                Ok(secrets) => secrets,
                Err(error) => {
                    warn!(%error, "cannot list the sessions that are over");
                    continue;
                }
            };
            for secret in secrets {
                let expires = secret.annotations().get(EXPIRES);
                let expires = expires.and_then(|text| text.parse::<Timestamp>().ok());
                if expires.is_none_or(|expires| expires < Timestamp::now()) {
                    let name = secret.name_any();
                    let deleted = self.secrets.delete(&name, &DeleteParams::default()).await;
                    if let Err(error) = deleted {
                        // Another replica may have been faster.
                        tracing::debug!(%error, name, "cannot delete a session that is over");
                    }
                }
            }
        }
    }
}
