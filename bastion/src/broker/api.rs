//! The API server, as one person: every request is recorded before it is sent, and made as the service
//! account of the person's namespace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bastion_core::audit::Event;
use bastion_core::protocol::{Call, Reply, permitted};
use bastion_core::target::InstanceAddress;
use devctl_api_server::{ApiServer, Door};
use devctl_core::host::{Api, Refused};
use devctl_core::object::Kind;
use http::header::HeaderName;
use http::{HeaderValue, Request};

use super::shared::{Broker, TRY_AGAIN};

/// The service account of a person, in the person's namespace. Its name has a dot, which no account of
/// a pod has.
const ACCOUNT: &str = "gpu-workspaces.owner";
/// Kubernetes, "User impersonation".
const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");
/// The API server's audit log keeps this id (Kubernetes, "Auditing").
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// A person in a session.
#[derive(Clone)]
pub(super) struct Person {
    session: Arc<Session>,
    /// The person's namespace.
    pub(super) namespace: String,
}

/// A session in the audit log.
struct Session {
    broker: Arc<Broker>,
    /// The name of the person.
    user: String,
    /// The id of the session.
    id: String,
    /// How many requests were made.
    requests: AtomicU64,
}

impl Session {
    async fn record(&self, event: Event) -> std::io::Result<()> {
        let session = Some((self.id.as_str(), self.user.as_str()));
        self.broker.record(session, event).await
    }
}

impl Person {
    pub(super) fn new(
        broker: &Arc<Broker>,
        user: String,
        session: String,
        namespace: String,
    ) -> Self {
        let session = Session {
            broker: Arc::clone(broker),
            user,
            id: session,
            requests: AtomicU64::default(),
        };
        Self {
            session: Arc::new(session),
            namespace,
        }
    }

    /// The name of the person.
    pub(super) fn user(&self) -> &str {
        &self.session.user
    }

    /// The name of the replica.
    pub(super) fn replica(&self) -> &str {
        &self.session.broker.replica
    }

    /// The id of the session.
    pub(super) fn session(&self) -> &str {
        &self.session.id
    }

    /// Writes an event of this session to the audit log.
    pub(super) async fn record(&self, event: Event) -> std::io::Result<()> {
        self.session.record(event).await
    }

    /// Writes an event that has happened already to the audit log, as soon as that is possible.
    pub(super) async fn record_at_last(&self, event: Event) {
        while self.record(event.clone()).await.is_err() {
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// The API server as this person.
    pub(super) fn api(&self) -> ApiServer {
        self.server(Some(format!(
            "system:serviceaccount:{}:{ACCOUNT}",
            self.namespace
        )))
    }

    /// The API server as the bastion itself. The person's session stays in the log.
    pub(super) fn bastion(&self) -> ApiServer {
        self.server(None)
    }

    /// Which address of an instance the bastion reaches.
    pub(super) fn instance_address(&self) -> InstanceAddress {
        self.session.broker.instance_address
    }

    fn server(&self, impersonated: Option<String>) -> ApiServer {
        let door = Recorded {
            session: Arc::clone(&self.session),
            impersonated,
        };
        let client = self.session.broker.client.clone();
        ApiServer::new(client, self.namespace.clone()).through(Box::new(door))
    }

    /// Does an operation of a session, if it stays in the person's namespace. The menu of flavors is of
    /// the whole cluster, so the broker reads it itself.
    pub(super) async fn call(&self, call: Call) -> Result<Reply, Refused> {
        permitted(&call, &self.namespace)?;
        let is_menu = match &call {
            Call::Get(object) | Call::Changed(object, ..) => object.kind == Kind::Flavor,
            Call::List(kind, _) => *kind == Kind::Flavor,
            _ => false,
        };
        let api = if is_menu { self.bastion() } else { self.api() };
        Ok(match call {
            Call::Get(object) => Reply::Object(api.get(&object).await?),
            Call::List(kind, scope) => Reply::Objects(api.list(kind, &scope).await?),
            Call::Create(object, effect) => Reply::Object(api.create(&object, effect).await?),
            Call::Patch(object, patch, effect) => {
                Reply::Object(api.patch(&object, &patch, effect).await?)
            }
            Call::Delete(object, uid) => {
                api.delete(&object, &uid).await?;
                Reply::Done
            }
            Call::Changed(object, version, longest) => {
                Reply::Change(api.changed(&object, &version, longest).await?)
            }
            Call::May(verb, kind, namespace) => {
                Reply::Flag(api.may(&verb, kind, &namespace).await?)
            }
            Call::Time => Reply::Time(api.time().await?),
        })
    }
}

/// What a request passes before it is sent.
struct Recorded {
    session: Arc<Session>,
    impersonated: Option<String>,
}

#[async_trait]
impl Door for Recorded {
    async fn pass(&self, request: &mut Request<Vec<u8>>) -> Result<(), Refused> {
        let number = self.session.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let audit_id = format!("{}.{number}", self.session.id);
        let header =
            |text: &str| HeaderValue::from_str(text).map_err(|error| unsent(error.to_string()));
        let headers = request.headers_mut();
        headers.insert(AUDIT_ID, header(&audit_id)?);
        if let Some(user) = &self.impersonated {
            headers.insert(IMPERSONATE, header(user)?);
        }
        let event = Event::ApiRequest {
            audit_id,
            method: request.method().to_string(),
            path: request.uri().to_string(),
        };
        let recorded = self.session.record(event).await;
        recorded.map_err(|error| unsent(error.to_string()))
    }
}

/// The answer to a request that the broker does not send.
fn unsent(message: String) -> Refused {
    Refused {
        message,
        ..Refused::default()
    }
}
