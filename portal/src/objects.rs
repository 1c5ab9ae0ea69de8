//! All objects of a kind of the whole cluster, as the API server knows them now.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watching};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tracing::warn;

/// The objects of a kind, by name.
pub(crate) type Objects = watch::Receiver<Arc<BTreeMap<String, Value>>>;

/// Follows the objects of a kind of our group. Returns when those that exist are known.
pub(crate) async fn follow(
    client: Client,
    kind: &'static str,
    plural: &'static str,
) -> Result<Objects, oneshot::error::RecvError> {
    let (sender, receiver) = watch::channel(Arc::default());
    let (ready, is_ready) = oneshot::channel();
    tokio::spawn(run(client, kind, plural, sender, ready));
    is_ready.await?;
    Ok(receiver)
}

async fn run(
    client: Client,
    kind: &'static str,
    plural: &'static str,
    sender: watch::Sender<Arc<BTreeMap<String, Value>>>,
    ready: oneshot::Sender<()>,
) {
    let named = GroupVersionKind::gvk(api::WORKSPACE_GROUP, api::VERSION, kind);
    let resource = ApiResource::from_gvk_with_plural(&named, plural);
    let all: Api<DynamicObject> = Api::all_with(client, &resource);
    let events = watching(all, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let (mut ready, mut objects) = (Some(ready), BTreeMap::new());
    loop {
        match events.try_next().await {
            Ok(Some(Event::Init)) => objects.clear(),
            Ok(Some(Event::InitApply(object))) => put(&mut objects, &object, kind),
            Ok(Some(event)) => {
                match &event {
                    Event::Apply(object) => put(&mut objects, object, kind),
                    Event::Delete(object) => drop(objects.remove(&object.name_any())),
                    _ => {}
                }
                sender.send_replace(Arc::new(objects.clone()));
                if let Some(ready) = ready.take() {
                    // The portal may have been told to end meanwhile.
                    let _ = ready.send(());
                }
            }
            Ok(None) => return,
            Err(error) => warn!(%error, kind, "cannot follow the objects; trying again"),
        }
    }
}

fn put(objects: &mut BTreeMap<String, Value>, object: &DynamicObject, kind: &str) {
    match serde_json::to_value(object) {
        Ok(value) => {
            objects.insert(object.name_any(), value);
        }
        Err(error) => warn!(%error, kind, name = object.name_any(), "cannot read an object"),
    }
}
