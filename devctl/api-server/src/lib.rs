//! The API server behind devctl's commands, by a client of kube.
//!
//! A laptop uses it with the client of a kubeconfig. The bastion uses it with its own client, and a
//! [`Door`] that makes each request the user's.

use std::time::Duration;

use async_trait::async_trait;
use devctl_core::host::{Api, Change, Effect, Refused, Scope};
use devctl_core::object::{Kind, Reference, version};
use futures::TryStreamExt;
use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use kube::core::WatchEvent;
use serde_json::{Value, json};

/// The name under which the API server records what devctl changes.
const MANAGER: &str = "devctl";

/// What happens to each request before it is sent.
#[async_trait]
pub trait Door: Send + Sync {
    /// Changes the headers of a request, or refuses it.
    async fn pass(&self, request: &mut Request<Vec<u8>>) -> Result<(), Refused>;
}

/// The API server.
pub struct ApiServer {
    client: Client,
    namespace: String,
    door: Option<Box<dyn Door>>,
}

impl ApiServer {
    /// The API server of a client, whose commands use this namespace if they name none.
    pub fn new(client: Client, namespace: String) -> Self {
        Self {
            client,
            namespace,
            door: None,
        }
    }

    /// The same, whose requests pass a door.
    #[must_use]
    pub fn through(mut self, door: Box<dyn Door>) -> Self {
        self.door = Some(door);
        self
    }

    /// The client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    async fn passed(&self, mut request: Request<Vec<u8>>) -> Result<Request<Vec<u8>>, Refused> {
        if let Some(door) = &self.door {
            door.pass(&mut request).await?;
        }
        Ok(request)
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, Refused> {
        let request = self.passed(request(method, path, body)?).await?;
        let answered = self.client.request(request).await;
        answered.map_err(|error| refused(&error))
    }
}

#[async_trait]
impl Api for ApiServer {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    async fn get(&self, object: &Reference) -> Result<Value, Refused> {
        self.request(Method::GET, &path(object), None).await
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Value>, Refused> {
        let path = match scope {
            Scope::Namespace(namespace) => folder(kind, namespace),
            Scope::Cluster => format!("{}/{}", root(kind), kind.plural()),
        };
        let mut listed = self.request(Method::GET, &path, None).await?;
        let items = listed.get_mut("items").map(Value::take).unwrap_or_default();
        let Value::Array(mut items) = items else {
            return Ok(Vec::new());
        };
        // The API server leaves both out of lists.
        for item in &mut items {
            item["apiVersion"] = json!(kind.api_version());
            item["kind"] = json!(kind.kind());
        }
        Ok(items)
    }

    async fn create(&self, object: &Value, effect: Effect) -> Result<Value, Refused> {
        let namespace = object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str);
        let path = folder(Kind::Claim, namespace.unwrap_or(&self.namespace));
        let path = format!("{path}?{}", query(effect));
        self.request(Method::POST, &path, Some(("application/json", object)))
            .await
    }

    async fn patch(
        &self,
        object: &Reference,
        patch: &Value,
        effect: Effect,
    ) -> Result<Value, Refused> {
        let url = format!("{}?{}", path(object), query(effect));
        self.request(
            Method::PATCH,
            &url,
            Some(("application/merge-patch+json", patch)),
        )
        .await
    }

    async fn delete(&self, object: &Reference, uid: &str) -> Result<(), Refused> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Foreground",
        });
        let body = Some(("application/json", &options));
        self.request(Method::DELETE, &path(object), body)
            .await
            .map(drop)
    }

    async fn changed(
        &self,
        object: &Reference,
        since: &str,
        longest: Duration,
    ) -> Result<Change, Refused> {
        let now = match self.get(object).await {
            Ok(now) if version(&now) != since => return Ok(Change::Now(Box::new(now))),
            Ok(now) => Some(now),
            Err(refused) if refused.is_absent() && !since.is_empty() => return Ok(Change::Gone),
            Err(refused) if refused.is_absent() => None,
            Err(refused) => return Err(refused),
        };
        let folder = folder(object.kind, &object.namespace);
        let from = match &now {
            Some(now) => format!("&resourceVersion={}", version(now)),
            None => String::new(),
        };
        let seconds = longest.as_secs().max(1);
        let path = format!(
            "{folder}?watch=1&fieldSelector=metadata.name%3D{}&timeoutSeconds={seconds}{from}",
            object.name
        );
        let request = self.passed(request(Method::GET, &path, None)?).await?;
        let events = self.client.request_events::<Value>(request).await;
        let events = events.map_err(|error| refused(&error))?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await.map_err(|error| refused(&error))? {
            match event {
                WatchEvent::Added(now) | WatchEvent::Modified(now) => {
                    return Ok(Change::Now(Box::new(now)));
                }
                WatchEvent::Deleted(_) => return Ok(Change::Gone),
                WatchEvent::Bookmark(_) => {}
                // The version is too old: the next call reads the object again.
                WatchEvent::Error(_) => return Ok(Change::None),
            }
        }
        Ok(Change::None)
    }

    async fn may(&self, verb: &str, kind: Kind, namespace: &str) -> Result<bool, Refused> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb, "group": kind.group(), "resource": kind.plural(), "namespace": namespace,
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = self
            .request(Method::POST, path, Some(("application/json", &review)))
            .await?;
        Ok(answer.pointer("/status/allowed").and_then(Value::as_bool) == Some(true))
    }

    async fn time(&self) -> Result<Timestamp, Refused> {
        let request = self.passed(request(Method::GET, "/version", None)?).await?;
        let answer = self.client.send(request.map(Body::from)).await;
        let answer = answer.map_err(|error| refused(&error))?;
        let date = answer
            .headers()
            .get(http::header::DATE)
            .and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        date.map(|date| date.timestamp()).ok_or_else(|| Refused {
            message: "the API server does not tell its time".to_owned(),
            ..Refused::default()
        })
    }
}

fn root(kind: Kind) -> String {
    let root = if kind.group().is_empty() {
        "api"
    } else {
        "apis"
    };
    format!("/{root}/{}", kind.api_version())
}

fn folder(kind: Kind, namespace: &str) -> String {
    if kind.is_namespaced() {
        format!("{}/namespaces/{namespace}/{}", root(kind), kind.plural())
    } else {
        format!("{}/{}", root(kind), kind.plural())
    }
}

fn path(object: &Reference) -> String {
    format!("{}/{}", folder(object.kind, &object.namespace), object.name)
}

fn query(effect: Effect) -> String {
    match effect {
        Effect::Stored => format!("fieldManager={MANAGER}&fieldValidation=Strict"),
        Effect::Trial => format!("fieldManager={MANAGER}&fieldValidation=Strict&dryRun=All"),
    }
}

fn request(
    method: Method,
    path: &str,
    body: Option<(&str, &Value)>,
) -> Result<Request<Vec<u8>>, Refused> {
    let mut request = Request::builder().method(method).uri(path);
    let bytes = match body {
        Some((kind, value)) => {
            request = request.header(http::header::CONTENT_TYPE, kind);
            value.to_string().into_bytes()
        }
        None => Vec::new(),
    };
    request.body(bytes).map_err(|error| unusable(&error))
}

fn unusable(error: &http::Error) -> Refused {
    Refused {
        message: error.to_string(),
        ..Refused::default()
    }
}

fn refused(error: &kube::Error) -> Refused {
    match error {
        kube::Error::Api(status) => Refused {
            status: Some(status.code),
            reason: status.reason.clone(),
            message: status.message.clone(),
            fields: status
                .details
                .iter()
                .flat_map(|details| &details.causes)
                .map(|cause| cause.field.clone())
                .filter(|field| !field.is_empty())
                .collect(),
        },
        kube::Error::Auth(error) => Refused {
            status: Some(401),
            reason: "Unauthorized".to_owned(),
            message: error.to_string(),
            fields: Vec::new(),
        },
        other => Refused {
            message: chain(other),
            ..Refused::default()
        },
    }
}

/// The message of an error, and of its causes that say more.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        let message = one.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = one.source();
    }
    text
}
