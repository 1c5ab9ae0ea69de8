//! Watches whose beginning is noticed.

use std::fmt::Debug;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::api::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::readiness::Readiness;

/// The resources of a kind, for kube's `Controller::for_stream`. The process is
/// not ready before it has seen every one of them; then `complete` is called.
///
/// `Store::wait_until_ready` cannot tell that beside a controller: it wakes one
/// waiter only (kube 5.0).
pub fn everything<K>(
    client: Client,
    readiness: &Readiness,
    complete: impl FnOnce() + Send + 'static,
) -> (
    Store<K>,
    impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let waiting = readiness.wait_for(format!("the watch of {}", K::plural(&())));
    let mut waiting = Some((waiting, complete));
    let (reader, writer) = reflector::store();
    let seen = watcher(Api::all(client), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .inspect_ok(move |event| {
            if matches!(event, watcher::Event::InitDone)
                && let Some((waiting, complete)) = waiting.take()
            {
                waiting.finish();
                complete();
            }
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
