//! Watches that report when their first list is complete.

use std::fmt::Debug;

use futures::future::ready;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::api::Api;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::{self, Store};
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
    mut tell: impl FnMut(Seen<'_, K>) + Send + 'static,
) -> Watched<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let waiting = readiness.wait_for(format!("the watch of {}", K::plural(&())));
    let mut waiting = Some(waiting);
    let (store, writer) = reflector::store();
    let unreadable = Unreadable::default();
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
        .inspect_ok(move |event| match event {
            watcher::Event::InitDone => {
                if let Some(waiting) = waiting.take() {
                    waiting.finish();
                }
                tell(Seen::All);
            }
            watcher::Event::Apply(one) => tell(Seen::One(one)),
            watcher::Event::Delete(one) => tell(Seen::Gone(one)),
            watcher::Event::Init | watcher::Event::InitApply(_) => {}
        })
        .applied_objects()
        .boxed();
    Watched {
        store,
        changes,
        unreadable,
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
