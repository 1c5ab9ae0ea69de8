//! Watches that report when their first list is complete.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::ready;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::api::Api;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::readiness::Readiness;
use crate::unreadable::{Reader, Reports, Unreadable};

/// A change of a watch's store.
pub enum Seen<'a, K> {
    /// The first list is complete.
    All,
    /// A resource was added or changed.
    One(&'a K),
    /// A resource was deleted.
    Gone(&'a K),
}

/// A watch of all resources of a kind.
pub struct Watched<K>
where
    K: Resource<DynamicType = ()> + 'static,
{
    /// The resources that can be read.
    pub store: Store<K>,
    /// The changes, for kube's `Controller::for_stream`.
    pub changes: BoxStream<'static, Result<K, watcher::Error>>,
    /// The resources that cannot be read, and are missing from the store.
    pub unreadable: Unreadable<K>,
}

/// Watches all resources of a kind. The process is not ready before the first list is complete.
/// `tell` is called for every change of the store, including deletions. A resource that cannot be
/// read is told about in `reports`, and is deleted for `tell`.
///
/// `Store::wait_until_ready` cannot be used beside a controller: in kube 5.0 it wakes only one
/// waiter.
pub fn everything<K>(
    client: Client,
    readiness: &Readiness,
    reports: Reports,
    tell: impl FnMut(Seen<'_, K>) + Send + 'static,
) -> Watched<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let waiting = readiness.wait_for(format!("the watch of {}", K::plural(&())));
    let mut waiting = Some(waiting);
    let (store, writer) = reflector::store();
    let unreadable = Unreadable::default();
    let mut changes = Changes::of(store.clone(), tell);
    let mut reader = Reader::new(store.clone(), unreadable.clone());
    let all: Api<DeserializeGuard<K>> = Api::all(client);
    let read = watcher(all, watcher::Config::default())
        .default_backoff()
        .try_filter_map(move |event| {
            let (event, news) = reader.read(event);
            reader.report(&reports, news);
            ready(Ok(event))
        });
    let changes = read
        // The provider does not read `managedFields`, and they are half of what would be kept. An
        // update without them does not change them.
        .modify(|object: &mut K| object.meta_mut().managed_fields = None)
        .reflect(writer)
        .inspect_ok(move |event| {
            let is_listed = matches!(event, watcher::Event::InitDone);
            if let Some(waiting) = waiting.take_if(|_| is_listed) {
                waiting.finish();
            }
            changes.read(event);
        })
        .applied_objects()
        .boxed();
    Watched {
        store,
        changes,
        unreadable,
    }
}

/// Tells what a watch's events change in its store.
struct Changes<K, F>
where
    K: Resource<DynamicType = ()> + 'static,
{
    store: Store<K>,
    /// The resources before the list that is being read.
    before: Vec<Arc<K>>,
    tell: F,
}

impl<K, F> Changes<K, F>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
    F: FnMut(Seen<'_, K>),
{
    fn of(store: Store<K>, tell: F) -> Self {
        Self {
            store,
            before: Vec::new(),
            tell,
        }
    }

    /// Reads an event that is in the store already. A watch that begins anew lists everything, and
    /// has no event for resources that were deleted meanwhile.
    fn read(&mut self, event: &watcher::Event<K>) {
        match event {
            watcher::Event::Init => self.before = self.store.state(),
            watcher::Event::InitApply(_) => {}
            watcher::Event::InitDone => {
                for old in std::mem::take(&mut self.before) {
                    if !self.has(&old) {
                        (self.tell)(Seen::Gone(&old));
                    }
                }
                (self.tell)(Seen::All);
            }
            watcher::Event::Apply(one) => (self.tell)(Seen::One(one)),
            watcher::Event::Delete(one) => (self.tell)(Seen::Gone(one)),
        }
    }

    /// Whether the store has this resource, and not a later one of the same name.
    fn has(&self, resource: &K) -> bool {
        let found = self.store.get(&ObjectRef::from_obj(resource));
        found.is_some_and(|found| found.meta().uid == resource.meta().uid)
    }
}

/// The metadata of the resources of a kind, each time their `metadata.generation` changes: when the
/// spec changes, and not when only the status does. Metadata can be read of every resource.
pub fn wishes<K>(
    client: Client,
) -> impl Stream<Item = Result<PartialObjectMeta<K>, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let metadata: Api<PartialObjectMeta<K>> = Api::all(client);
    watcher(metadata, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default())
        .boxed()
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt as _;
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};

    use super::*;

    fn named(name: &str, uid: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.into());
        object.metadata.namespace = Some("team".into());
        object.metadata.uid = Some(uid.into());
        object
    }

    /// What a watch with these events tells.
    async fn told(events: Vec<watcher::Event<ConfigMap>>) -> Vec<String> {
        let (store, writer) = reflector::store();
        let mut told = Vec::new();
        let mut changes = Changes::of(store, |seen: Seen<'_, ConfigMap>| {
            told.push(match seen {
                Seen::All => "all".to_owned(),
                Seen::One(one) => format!("{} is there", one.name_any()),
                Seen::Gone(one) => format!("{} is gone", one.uid().unwrap()),
            });
        });
        let events = stream::iter(events.into_iter().map(Ok::<_, watcher::Error>));
        let read = events
            .reflect(writer)
            .inspect_ok(|event| changes.read(event));
        read.try_collect::<Vec<_>>().await.unwrap();
        told
    }

    #[tokio::test]
    async fn a_resource_that_went_while_the_watch_was_broken_is_told_about() {
        let (stays, goes) = (named("a", "uid-a"), named("b", "uid-b"));
        let events = vec![
            Init,
            InitApply(stays.clone()),
            InitApply(goes),
            InitDone,
            Init,
            InitApply(stays.clone()),
            InitDone,
            Apply(stays.clone()),
            Delete(stays),
        ];
        let expected = ["all", "uid-b is gone", "all", "a is there", "uid-a is gone"];
        assert_eq!(told(events).await, expected);
    }

    #[tokio::test]
    async fn a_resource_that_was_made_anew_while_the_watch_was_broken_is_another_one() {
        let events = vec![
            Init,
            InitApply(named("a", "uid-1")),
            InitDone,
            Init,
            InitApply(named("a", "uid-2")),
            InitDone,
        ];
        assert_eq!(told(events).await, ["all", "uid-1 is gone", "all"]);
    }
}
