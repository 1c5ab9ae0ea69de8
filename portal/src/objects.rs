//! All objects of a kind of the whole cluster, as the API server knows them now.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{Config, Event};
use kube::{Client, ResourceExt};
use portal_core::view::without_managed_fields;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tracing::warn;

use crate::following;

/// The objects of a kind, by name.
pub(crate) type Objects = watch::Receiver<Arc<BTreeMap<String, Value>>>;

/// A kind of objects that the API server serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// The API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The version.
    pub(crate) version: &'static str,
    /// The kind.
    pub(crate) kind: &'static str,
    /// The name of the kind in paths.
    pub(crate) plural: &'static str,
}

impl Served {
    /// A kind of a group.
    pub(crate) const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
        }
    }

    /// A kind of our group.
    pub(crate) const fn ours(kind: &'static str, plural: &'static str) -> Self {
        Self::new(api::WORKSPACE_GROUP, api::VERSION, kind, plural)
    }

    /// The kind for kube.
    pub(crate) fn resource(&self) -> ApiResource {
        let named = GroupVersionKind::gvk(self.group, self.version, self.kind);
        ApiResource::from_gvk_with_plural(&named, self.plural)
    }

    /// The objects of the kind, in all namespaces.
    pub(crate) fn everywhere(&self, client: Client) -> Api<DynamicObject> {
        Api::all_with(client, &self.resource())
    }

    /// An object of the kind with its kind, which the API server leaves out of lists, and without what the portal
    /// does not read.
    pub(crate) fn value(&self, object: &DynamicObject) -> Option<Value> {
        let mut value = match serde_json::to_value(object) {
            Ok(value) => without_managed_fields(value),
            Err(error) => {
                warn!(%error, kind = self.kind, name = object.name_any(), "cannot read an object");
                return None;
            }
        };
        value["apiVersion"] = self.resource().api_version.into();
        value["kind"] = self.kind.into();
        Some(value)
    }
}

/// Follows the objects of a kind, which has no namespaces. Returns when those that exist are known.
pub(crate) async fn follow(
    client: Client,
    kind: Served,
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
    let all = kind.everywhere(client);
    following::follow(all, Config::default(), kind.plural, take).await?;
    Ok(receiver)
}

fn put(objects: &mut BTreeMap<String, Value>, object: &DynamicObject, kind: Served) {
    if let Some(value) = kind.value(object) {
        objects.insert(object.name_any(), value);
    }
}
