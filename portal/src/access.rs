//! What people may list, by their own rights in Kubernetes.
//!
//! The API server answers for each person: first for the whole cluster, and else for each namespace that names
//! them. An answer is kept until something of the rights changes.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource, ResourceExt};
use portal_core::bindings::{Binding, Bindings, Subject};
use portal_core::identity::Person;
use portal_core::visible::Visible;
use serde::de::DeserializeOwned;
use tokio::sync::{oneshot, watch};
use tracing::warn;

use crate::cluster::{self, Who};
use crate::following;

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
    pub(crate) async fn follow(client: Client) -> Result<Self, oneshot::error::RecvError> {
        let access = Self {
            client: client.clone(),
            bindings: Arc::default(),
            changes: watch::Sender::new(0),
            known: Arc::default(),
        };
        tokio::try_join!(
            access.follow_bindings(client.clone()),
            access.follow_signs::<ClusterRoleBinding>(client.clone(), "clusterrolebindings"),
            access.follow_signs::<Role>(client.clone(), "roles"),
            access.follow_signs::<ClusterRole>(client, "clusterroles"),
        )?;
        Ok(access)
    }

    /// Follows the bindings that say where to ask about a person.
    async fn follow_bindings(&self, client: Client) -> Result<(), oneshot::error::RecvError> {
        let (access, mut listed) = (self.clone(), Bindings::default());
        let take = move |event: Event<RoleBinding>| {
            match event {
                Event::Init => {
                    listed = Bindings::default();
                    return;
                }
                Event::InitApply(binding) => {
                    listed.put(name(&binding), subjects(&binding));
                    return;
                }
                Event::InitDone => access.change(|known| *known = std::mem::take(&mut listed)),
                Event::Apply(binding) => {
                    access.change(|known| known.put(name(&binding), subjects(&binding)));
                }
                Event::Delete(binding) => access.change(|known| known.remove(&name(&binding))),
            }
            access.changed();
        };
        let all = Api::all(client);
        following::follow(all, Config::default(), "rolebindings", take).await
    }

    /// Follows objects of which it only matters that they change.
    async fn follow_signs<K>(
        &self,
        client: Client,
        what: &'static str,
    ) -> Result<(), oneshot::error::RecvError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let access = self.clone();
        let take = move |event: Event<K>| {
            if !matches!(event, Event::Init | Event::InitApply(_)) {
                access.changed();
            }
        };
        following::follow(Api::all(client), Config::default(), what, take).await
    }

    fn change(&self, change: impl FnOnce(&mut Bindings)) {
        if let Ok(mut bindings) = self.bindings.lock() {
            change(&mut bindings);
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|change| *change += 1);
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
        let who = &Who::Person(person.clone());
        if self.may_list(who, "").await? {
            return Ok(Visible::Everywhere);
        }
        let named = match self.bindings.lock() {
            Ok(bindings) => bindings.namespaces(person),
            Err(_) => BTreeSet::new(),
        };
        let mut answers = stream::iter(named)
            .map(|namespace| async move {
                let may = self.may_list(who, &namespace).await?;
                Ok::<_, NoAnswer>(may.then_some(namespace))
            })
            .buffer_unordered(AT_ONCE);
        let mut namespaces = BTreeSet::new();
        while let Some(answer) = answers.next().await {
            namespaces.extend(answer?);
        }
        Ok(Visible::In(namespaces))
    }

    async fn may_list(&self, who: &Who, namespace: &str) -> Result<bool, NoAnswer> {
        let answer = cluster::may_list(&self.client, who, namespace).await;
        answer.map_err(|problem| NoAnswer(problem.detail))
    }
}

/// Whom a binding names.
fn subjects(binding: &RoleBinding) -> Vec<Subject> {
    let subjects = binding.subjects.iter().flatten();
    let named = subjects.filter_map(|subject| match subject.kind.as_str() {
        "User" => Some(Subject::User(subject.name.clone())),
        "Group" => Some(Subject::Group(subject.name.clone())),
        _ => None,
    });
    named.collect()
}

fn name(binding: &RoleBinding) -> Binding {
    Binding {
        namespace: binding.namespace().unwrap_or_default(),
        name: binding.name_any(),
    }
}
