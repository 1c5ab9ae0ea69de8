//! Watches whose beginning is noticed.

use std::fmt::Debug;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::api::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::readiness::Readiness;

/// What a watch has put into its store.
pub enum Seen<'a, K> {
    /// Every resource there is.
    All,
    /// One that changed.
    One(&'a K),
    /// One that went.
    Gone(&'a K),
}

/// The resources of a kind, for kube's `Controller::for_stream`. The process is
/// not ready before it has seen every one of them. `tell` hears of what the store
/// learns, also of resources that go.
///
/// `Store::wait_until_ready` cannot tell that beside a controller: it wakes one
/// waiter only (kube 5.0).
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
        // Nobody reads who wrote which field, and it is half of what would be kept.
        // An update without them leaves them as they are.
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

/// The resources of a kind whenever what people want of them changes, and not
/// when their status does.
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
