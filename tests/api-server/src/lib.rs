//! An API server of Kubernetes in memory, for tests of code that calls one.
//!
//! The server stores objects as JSON by path, and refuses writes with a stale version. It
//! implements no schema, no watch and no field ownership.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

/// The type of the body of a server-side apply.
const APPLY: &[u8] = b"application/apply-patch";

/// The API server. Clones share their state.
#[derive(Clone, Default)]
pub struct ApiServer(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    writes: usize,
    refusal: Option<u16>,
    /// The number of objects in each list so far.
    lists: Vec<usize>,
    /// The number of lists after which none is answered.
    most_lists: Option<usize>,
}

impl ApiServer {
    /// A client of this server. Its default namespace is `default`.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// The object at a path, for example `/api/v1/namespaces/a/secrets/b`.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.state().objects.get(path).cloned()
    }

    /// Stores an object under a new version.
    pub fn put(&self, path: &str, object: Value) {
        self.state().store(path, object);
    }

    /// Deletes an object, as another client does.
    pub fn remove(&self, path: &str) {
        self.state().objects.remove(path);
    }

    /// Makes the server answer every later request with this error code.
    pub fn refuse(&self, code: u16) {
        self.state().refusal = Some(code);
    }

    /// Makes the server answer later requests again.
    pub fn accept(&self) {
        self.state().refusal = None;
    }

    /// Makes the server answer no more lists than these.
    pub fn refuse_after_lists(&self, lists: usize) {
        self.state().most_lists = Some(lists);
    }

    /// The number of objects in the longest list so far.
    pub fn longest_list(&self) -> usize {
        let state = self.state();
        state.lists.iter().copied().max().unwrap_or_default()
    }

    /// The number of accepted writes, without those of events.
    pub fn writes(&self) -> usize {
        self.state().writes
    }

    /// The number of events that were written.
    pub fn events(&self) -> usize {
        let state = self.state();
        state
            .objects
            .keys()
            .filter(|p| p.contains("/events/"))
            .count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn answer(&mut self, ask: &Ask) -> Result<Value, u16> {
        if let Some(code) = self.refusal {
            return Err(code);
        }
        let path = ask.path.trim_end_matches("/status");
        let stored = self.objects.get(path).cloned();
        let sent = ask.object.clone();
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let is_stale =
            |stored: &Value| !version(&sent).is_null() && version(&sent) != version(stored);
        match (&ask.method, stored) {
            (&Method::GET, Some(stored)) => Ok(stored),
            (&Method::GET, None) => self.page(path, &ask.query),
            (&Method::POST, _) => {
                let name = match sent["metadata"]["name"].as_str() {
                    Some(name) => name.to_owned(),
                    None => format!("generated-{}", self.version),
                };
                let path = format!("{path}/{name}");
                let mut sent = sent.clone();
                sent["metadata"]["name"] = json!(name);
                if self.objects.contains_key(&path) {
                    return Err(409);
                }
                Ok(self.write(&path, sent))
            }
            (&Method::PUT | &Method::PATCH, Some(stored)) if is_stale(&stored) => Err(409),
            (&Method::PUT, Some(_)) => Ok(self.write(path, sent)),
            (&Method::PATCH, Some(mut stored)) => {
                json_patch::merge(&mut stored, &sent);
                Ok(self.write(path, stored))
            }
            (&Method::DELETE, Some(stored)) => {
                self.objects.remove(path);
                Ok(stored)
            }
            (&Method::PATCH, None) if ask.is_apply => Ok(self.write(path, sent)),
            _ => Err(404),
        }
    }

    fn write(&mut self, path: &str, object: Value) -> Value {
        self.writes += usize::from(!path.contains("/events/"));
        self.store(path, object)
    }

    /// A part of a list. The token of the next part is the number of objects before it.
    fn page(&mut self, path: &str, query: &str) -> Result<Value, u16> {
        let mut list = self.list(path, query).ok_or(404_u16)?;
        if self.most_lists.is_some_and(|most| self.lists.len() >= most) {
            return Err(410);
        }
        let number = |key: &str| {
            let value = query.split('&').find_map(|part| part.strip_prefix(key));
            value.and_then(|value| value.parse::<usize>().ok())
        };
        let items = list["items"].as_array_mut().ok_or(500_u16)?;
        items.drain(..number("continue=").unwrap_or_default().min(items.len()));
        let size = number("limit=").unwrap_or(usize::MAX);
        let is_last = items.len() <= size;
        items.truncate(size);
        self.lists.push(items.len());
        if !is_last {
            let next = number("continue=").unwrap_or_default() + size;
            list["metadata"]["continue"] = json!(next.to_string());
        }
        Ok(list)
    }

    /// Every object of a kind that has all of the labels, in one namespace or in all.
    fn list(&self, path: &str, query: &str) -> Option<Value> {
        let (prefix, plural) = path.rsplit_once('/')?;
        // A path that does not end with `s` is the path of an object. Plurals of kinds end with
        // `s`, and the names of objects in these tests do not.
        if !plural.ends_with('s') {
            return None;
        }
        let selector = query
            .split('&')
            .find_map(|part| part.strip_prefix("labelSelector="));
        let selector = selector
            .unwrap_or_default()
            .replace("%2F", "/")
            .replace("%3D", "=")
            .replace("%2C", ",");
        let items = self.objects.iter().filter(|(path, object)| {
            let is_of_kind = path.contains(&format!("/{plural}/")) && path.starts_with(prefix);
            is_of_kind
                && selector
                    .split(',')
                    .filter(|term| !term.is_empty())
                    .all(|term| {
                        let labels = &object["metadata"]["labels"];
                        match term.split_once('=') {
                            Some((key, value)) => labels[key] == value,
                            None => !labels[term].is_null(),
                        }
                    })
        });
        let items: Vec<_> = items.map(|(_, object)| object).collect();
        Some(json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
    }
}

struct Ask {
    method: Method,
    path: String,
    query: String,
    is_apply: bool,
    object: Value,
}

impl Service<Request<Body>> for ApiServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let Ok(bytes) = body.collect_bytes().await else {
                return Ok(response(Err(400)));
            };
            let content_type = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
            let ask = Ask {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                is_apply: content_type.is_some_and(|t| t.starts_with(APPLY)),
                object: serde_json::from_slice(&bytes).unwrap_or_default(),
            };
            let answered = server.state().answer(&ask);
            Ok(response(answered))
        })
    }
}

fn response(answered: Result<Value, u16>) -> Response<Body> {
    let (code, object) = match answered {
        Ok(object) => (200, object),
        Err(code) => (code, refusal(code)),
    };
    let mut response = Response::new(Body::from(object.to_string().into_bytes()));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn refusal(code: u16) -> Value {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "InternalError",
    };
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "reason": reason, "message": reason, "code": code,
    })
}
