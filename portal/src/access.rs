//! What people may list, by their own rights in Kubernetes.
//!
//! The API server answers for each person: first for the whole cluster, and else for each namespace that names
//! them. An answer is kept until something of the rights changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watching};
use kube::{Api, Client, Resource, ResourceExt};
use portal_core::bindings::{Binding, Bindings, Subject};
use portal_core::identity::Person;
use portal_core::visible::Visible;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tracing::warn;

use crate::cluster::{self, Who};

/// How long an answer is kept, for authorizers whose changes nobody can follow.
const LONGEST: Duration = Duration::from_mins(5);
/// How long the last answer holds while the API server gives none.
const WITHOUT_ANSWER: Duration = Duration::from_mins(1);
/// How many questions are asked at the same time for one person.
const AT_ONCE: usize = 16;
/// How many people are remembered.
const PEOPLE: usize = 10_000;

/// What people may list.
#[derive(Clone)]
pub(crate) struct Access {
    client: Client,
    bindings: Arc<Mutex<Bindings>>,
    /// Rises with each change of a role or a binding.
    changes: watch::Sender<u64>,
    known: Arc<Mutex<HashMap<Person, Answer>>>,
}

#[derive(Clone)]
struct Answer {
    visible: Visible,
    change: u64,
    at: Instant,
}

/// The API server gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("the API server does not say what a person may list: {0}")]
struct NoAnswer(String);

impl Access {
    /// Follows roles and bindings. Returns when those that exist are known.
    pub(crate) async fn follow(client: Client) -> Self {
        let access = Self {
            client: client.clone(),
            bindings: Arc::default(),
            changes: watch::Sender::new(0),
            known: Arc::default(),
        };
        let (ready, mut are_ready) = mpsc::channel(4);
        tokio::spawn(follow::<RoleBinding>(
            client.clone(),
            access.clone(),
            ready.clone(),
        ));
        tokio::spawn(follow::<ClusterRoleBinding>(
            client.clone(),
            access.clone(),
            ready.clone(),
        ));
        tokio::spawn(follow::<Role>(
            client.clone(),
            access.clone(),
            ready.clone(),
        ));
        tokio::spawn(follow::<ClusterRole>(client, access.clone(), ready));
        for _ in 0..4 {
            are_ready.recv().await;
        }
        access
    }

    /// Tells when something of the rights has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The namespaces whose claims a person may list.
    pub(crate) async fn visible(&self, person: &Person) -> Visible {
        let change = *self.changes.borrow();
        let known = self.known.lock().ok();
        let known = known.and_then(|known| known.get(person).cloned());
        if let Some(answer) = &known
            && answer.change == change
            && answer.at.elapsed() < LONGEST
        {
            return answer.visible.clone();
        }
        match self.ask(person).await {
            Ok(visible) => {
                let answer = Answer {
                    visible: visible.clone(),
                    change,
                    at: Instant::now(),
                };
                if let Ok(mut known) = self.known.lock() {
                    if known.len() >= PEOPLE {
                        known.clear();
                    }
                    known.insert(person.clone(), answer);
                }
                visible
            }
            Err(error) => {
                warn!(%error, user = person.user, "nobody knows what a person may list");
                let last = known.filter(|answer| answer.at.elapsed() < WITHOUT_ANSWER);
                last.map_or_else(Visible::nothing, |answer| answer.visible)
            }
        }
    }

    async fn ask(&self, person: &Person) -> Result<Visible, NoAnswer> {
        if self.may_list(person, "").await? {
            return Ok(Visible::Everywhere);
        }
        let named = match self.bindings.lock() {
            Ok(bindings) => bindings.namespaces(person),
            Err(_) => BTreeSet::new(),
        };
        let mut answers = stream::iter(named)
            .map(|namespace| async move {
                let may = self.may_list(person, &namespace).await?;
                Ok::<_, NoAnswer>(may.then_some(namespace))
            })
            .buffer_unordered(AT_ONCE);
        let mut namespaces = BTreeSet::new();
        while let Some(answer) = answers.next().await {
            namespaces.extend(answer?);
        }
        Ok(Visible::In(namespaces))
    }

    async fn may_list(&self, person: &Person, namespace: &str) -> Result<bool, NoAnswer> {
        let who = Who::Person(person.clone());
        let answer = cluster::may_list(&self.client, &who, namespace).await;
        answer.map_err(|problem| NoAnswer(problem.detail))
    }
}

/// A part of the rights.
trait Part:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static
{
    /// Whom it names, if that matters.
    fn subjects(&self) -> Option<Vec<Subject>> {
        None
    }
}

impl Part for Role {}
impl Part for ClusterRole {}
impl Part for ClusterRoleBinding {}

impl Part for RoleBinding {
    fn subjects(&self) -> Option<Vec<Subject>> {
        let subjects = self.subjects.iter().flatten();
        let named = subjects.filter_map(|subject| match subject.kind.as_str() {
            "User" => Some(Subject::User(subject.name.clone())),
            "Group" => Some(Subject::Group(subject.name.clone())),
            _ => None,
        });
        Some(named.collect())
    }
}

/// Follows one kind of the rights.
async fn follow<P: Part>(client: Client, access: Access, ready: mpsc::Sender<()>) {
    let events = watching(Api::<P>::all(client), watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut ready = Some(ready);
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                warn!(%error, "cannot follow the rights; trying again");
                continue;
            }
        };
        access.take(&event);
        if matches!(event, Event::InitDone)
            && let Some(ready) = ready.take()
        {
            // The portal may have been told to end meanwhile.
            let _ = ready.send(()).await;
        }
    }
}

impl Access {
    fn take<P: Part>(&self, event: &Event<P>) {
        let Ok(mut bindings) = self.bindings.lock() else {
            return;
        };
        match event {
            Event::Init => {
                // Only one kind has subjects that matter.
                if P::kind(&()) == "RoleBinding" {
                    bindings.clear();
                }
                return;
            }
            Event::InitApply(part) | Event::Apply(part) => {
                if let Some(subjects) = part.subjects() {
                    bindings.put(name(part), subjects);
                }
            }
            Event::Delete(part) => bindings.remove(&name(part)),
            Event::InitDone => {}
        }
        drop(bindings);
        if !matches!(event, Event::InitApply(_)) {
            self.changes.send_modify(|change| *change += 1);
        }
    }
}

fn name(part: &impl ResourceExt) -> Binding {
    Binding {
        namespace: part.namespace().unwrap_or_default(),
        name: part.name_any(),
    }
}
