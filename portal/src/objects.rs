//! All objects of a kind of the whole cluster, as the API server knows them now.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{Config, Event};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tracing::warn;

use crate::following;

/// The objects of a kind, by name.
pub(crate) type Objects = watch::Receiver<Arc<BTreeMap<String, Value>>>;

/// The objects of a kind of our group, in all namespaces.
pub(crate) fn all(client: Client, kind: &str, plural: &str) -> Api<DynamicObject> {
    let named = GroupVersionKind::gvk(api::WORKSPACE_GROUP, api::VERSION, kind);
    Api::all_with(client, &ApiResource::from_gvk_with_plural(&named, plural))
}

/// Follows the objects of a kind of our group. Returns when those that exist are known.
pub(crate) async fn follow(
    client: Client,
    kind: &'static str,
    plural: &'static str,
) -> Result<Objects, oneshot::error::RecvError> {
    let (sender, receiver) = watch::channel(Arc::default());
    let mut objects = BTreeMap::new();
    let take = move |event| {
        match event {
            Event::Init => {
                objects.clear();
                return;
            }
            Event::InitApply(object) => {
                put(&mut objects, &object, kind);
                return;
            }
            Event::Apply(object) => put(&mut objects, &object, kind),
            Event::Delete(object) => drop(objects.remove(&object.name_any())),
            Event::InitDone => {}
        }
        sender.send_replace(Arc::new(objects.clone()));
    };
    let all = all(client, kind, plural);
    following::follow(all, Config::default(), plural, take).await?;
    Ok(receiver)
}

fn put(objects: &mut BTreeMap<String, Value>, object: &DynamicObject, kind: &str) {
    match serde_json::to_value(object) {
        Ok(value) => {
            objects.insert(object.name_any(), value);
        }
        Err(error) => warn!(%error, kind, name = object.name_any(), "cannot read an object"),
    }
}
