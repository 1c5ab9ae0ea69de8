//! Watches that report when their first list is complete.

use std::fmt::Debug;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::api::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::readiness::Readiness;

/// A change of a watch's store.
pub enum Seen<'a, K> {
    /// The first list is complete.
    All,
    /// A resource was added or changed.
    One(&'a K),
    /// A resource was deleted.
    Gone(&'a K),
}

/// All resources of a kind, for kube's `Controller::for_stream`. The process is not ready before
/// the first list is complete. `tell` is called for every change of the store, including deletions.
///
/// `Store::wait_until_ready` cannot be used beside a controller: in kube 5.0 it wakes only one
/// waiter.
pub fn everything<K>(
    client: Client,
    readiness: &Readiness,
    mut tell: impl FnMut(Seen<'_, K>) + Send + 'static,
) -> (
    Store<K>,
    impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let waiting = readiness.wait_for(format!("the watch of {}", K::plural(&())));
    let mut waiting = Some(waiting);
    let (reader, writer) = reflector::store();
    let seen = watcher(Api::all(client), watcher::Config::default())
        .default_backoff()
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
    (reader, seen)
}

/// The resources of a kind, each time their `metadata.generation` changes: when the spec changes,
/// and not when only the status does.
pub fn wishes<K>(client: Client) -> impl Stream<Item = Result<K, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    watcher(Api::all(client), watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default())
        .boxed()
}
