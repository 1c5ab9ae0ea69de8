//! Objects that this version of the provider cannot read.
//!
//! In kube, a list fails as a whole if one of its objects does not deserialize. Then the watch
//! never gets past its first list, and nothing is done for any object. So each object of a watch is
//! read on its own. One that cannot be read is told about, and is missing from the watch's store.
//!
//! A validated object can be unreadable after a rollback: the newer version wrote a value that the
//! older one does not know.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::condition::Condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::error_boundary::InvalidObject;
use kube::core::{DeserializeGuard, PartialObjectMetaExt as _};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::{Client, Resource, ResourceExt as _};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::conditions::{self, Verdict};
use crate::events::{Events, Happened};
use crate::metrics::states::gvk;
use crate::metrics::{Labels, Metrics};
use crate::status;

/// The reason of the event about an object that cannot be read.
pub const UNREADABLE: &str = "Unreadable";

/// Namespace and name.
type Key = (Option<String>, String);

/// The objects of a kind that cannot be read, as a watch shows them. Clones share them.
pub struct Unreadable<K> {
    /// The resource version of each object.
    objects: Arc<Mutex<BTreeMap<Key, Option<String>>>>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Unreadable<K> {
    fn clone(&self) -> Self {
        Self {
            objects: Arc::clone(&self.objects),
            kind: PhantomData,
        }
    }
}

impl<K> Default for Unreadable<K> {
    fn default() -> Self {
        Self {
            objects: Arc::default(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Unreadable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unreadable").field(&*self.lock()).finish()
    }
}

impl<K> Unreadable<K> {
    /// Whether the object exists and cannot be read.
    pub fn contains(&self, object: &ObjectRef<K>) -> bool
    where
        K: kube::runtime::reflector::Lookup<DynamicType = ()>,
    {
        let key = (object.namespace.clone(), object.name.clone());
        self.lock().contains_key(&key)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Option<String>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells people about objects that cannot be read. Clones share the metric.
#[derive(Clone)]
pub struct Reports {
    client: Client,
    events: Events,
    counts: Family<Labels, Gauge>,
}

impl Reports {
    /// Registers the gauge `name`, for example `spot_unreadable_objects`. It counts the objects by
    /// kind.
    pub fn new(client: Client, events: Events, metrics: &Metrics, name: &str) -> Self {
        let counts = Family::default();
        metrics.register(
            name,
            "The number of objects that this version of the provider cannot read, and does \
             nothing for",
            &counts,
        );
        Self {
            client,
            events,
            counts,
        }
    }

    fn count<K: Resource<DynamicType = ()>>(&self, count: usize) {
        let labels = vec![("gvk", gvk::<K>())];
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.counts.get_or_create_owned(&labels).set(count);
    }

    /// Sets `Synced=False` in the object's status, writes an event and logs a line. Each names the
    /// field and never its value: the object may hold what must not be in a log.
    async fn tell<K>(&self, metadata: ObjectMeta)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let name = metadata.name.clone().unwrap_or_default();
        let namespace = metadata.namespace.as_deref();
        let kind = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        let object = match api.get_opt(&name).await {
            Ok(Some(object)) => object,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(kind = kind.kind, namespace, name, %error, "cannot get an object");
                return;
            }
        };
        let Some(field) = unreadable_field::<K>(&object) else {
            return;
        };
        tracing::error!(
            kind = kind.kind,
            namespace,
            name,
            field,
            "cannot read an object"
        );
        let message = message(&field);
        if !self.set_synced(&api, &object, &message).await {
            return;
        }
        let about = metadata.into_response_partial::<K>();
        let happened = [Happened::warning(UNREADABLE, message)];
        self.events
            .publish(&about, &happened, Timestamp::now())
            .await;
    }

    /// Sets `Synced=False`, and returns whether that is news. The rest of the status stays as it
    /// is, with the fields that this version does not know.
    async fn set_synced(
        &self,
        api: &Api<DynamicObject>,
        object: &DynamicObject,
        message: &str,
    ) -> bool {
        let before = &object.data["status"];
        let Some(known) = conditions_of(&before["conditions"]) else {
            return true;
        };
        let mut conditions = known.clone();
        let verdict = Verdict::not_synced("observe", &message);
        let generation = object.metadata.generation;
        conditions::set(&mut conditions, verdict, generation, Timestamp::now());
        if conditions == known {
            return false;
        }
        let mut after = before.clone();
        after["conditions"] = json!(conditions);
        let written = status::write(api, &object.metadata, Some(before), &after).await;
        if let Err(error) = written {
            let code = match &error {
                kube::Error::Api(status) => status.reason.clone(),
                _ => "no answer".to_owned(),
            };
            // The API server's message may quote the object.
            tracing::warn!(name = object.name_any(), code, "cannot write a condition");
        }
        true
    }
}

/// The conditions in a status as it is stored. `None` if these, too, cannot be read.
fn conditions_of(stored: &Value) -> Option<Vec<Condition>> {
    if stored.is_null() {
        return Some(Vec::new());
    }
    serde_json::from_value(stored.clone()).ok()
}

/// The path of the first field that cannot be read. `None` if the whole object can be.
fn unreadable_field<K: DeserializeOwned>(object: &DynamicObject) -> Option<String> {
    let stored = serde_json::to_value(object).ok()?;
    let read = serde_path_to_error::deserialize::<_, K>(stored);
    read.err().map(|error| error.path().to_string())
}

fn message(field: &str) -> String {
    format!(
        "{field}: this version of the provider cannot read the value, so it does nothing for this \
         object; correct the field, or install the version of the provider that wrote it"
    )
}

/// Reads a watch's objects one by one.
pub(crate) struct Reader<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    store: Store<K>,
    unreadable: Unreadable<K>,
    /// The unreadable objects of the list that is being read.
    listed: Vec<ObjectMeta>,
    /// The number of unreadable objects that the metric shows.
    counted: Option<usize>,
}

impl<K> Reader<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Send + Sync + 'static,
{
    /// Reads for a watch that fills `store`.
    pub(crate) fn new(store: Store<K>, unreadable: Unreadable<K>) -> Self {
        Self {
            store,
            unreadable,
            listed: Vec::new(),
            counted: None,
        }
    }

    /// The event as readable objects show it, and the objects that became unreadable with it. An
    /// object that becomes unreadable leaves the store: the provider would act by an old version.
    pub(crate) fn read(
        &mut self,
        event: Event<DeserializeGuard<K>>,
    ) -> (Option<Event<K>>, Vec<ObjectMeta>) {
        match event {
            Event::Init => {
                self.listed.clear();
                (Some(Event::Init), Vec::new())
            }
            Event::InitApply(DeserializeGuard(Ok(object))) => {
                (Some(Event::InitApply(object)), Vec::new())
            }
            Event::InitApply(DeserializeGuard(Err(InvalidObject { metadata, .. }))) => {
                self.listed.push(metadata);
                (None, Vec::new())
            }
            Event::InitDone => (Some(Event::InitDone), self.replace()),
            Event::Apply(DeserializeGuard(Ok(object))) => {
                self.unreadable.lock().remove(&key(object.meta()));
                (Some(Event::Apply(object)), Vec::new())
            }
            Event::Apply(DeserializeGuard(Err(InvalidObject { metadata, .. }))) => {
                let before = self.store.get(&reference(&metadata));
                let version = metadata.resource_version.clone();
                self.unreadable.lock().insert(key(&metadata), version);
                let gone = before.map(|before| Event::Delete(before.as_ref().clone()));
                (gone, vec![metadata])
            }
            Event::Delete(DeserializeGuard(Ok(object))) => {
                self.unreadable.lock().remove(&key(object.meta()));
                (Some(Event::Delete(object)), Vec::new())
            }
            Event::Delete(DeserializeGuard(Err(InvalidObject { metadata, .. }))) => {
                self.unreadable.lock().remove(&key(&metadata));
                (None, Vec::new())
            }
        }
    }

    /// Takes the objects of a complete list, and returns those that changed since the last one.
    fn replace(&mut self) -> Vec<ObjectMeta> {
        let listed = std::mem::take(&mut self.listed);
        let versions = listed
            .iter()
            .map(|metadata| (key(metadata), metadata.resource_version.clone()));
        let versions = versions.collect();
        let before = std::mem::replace(&mut *self.unreadable.lock(), versions);
        let is_new =
            |metadata: &ObjectMeta| before.get(&key(metadata)) != Some(&metadata.resource_version);
        listed.into_iter().filter(is_new).collect()
    }

    /// Tells people about `unreadable` objects, without waiting for it.
    pub(crate) fn report(&mut self, reports: &Reports, unreadable: Vec<ObjectMeta>) {
        // Nearly every event of a watch changes nothing here.
        let count = self.unreadable.lock().len();
        if self.counted.replace(count) != Some(count) {
            reports.count::<K>(count);
        }
        for metadata in unreadable {
            let reports = reports.clone();
            tokio::spawn(async move { reports.tell::<K>(metadata).await });
        }
    }
}

fn key(metadata: &ObjectMeta) -> Key {
    let name = metadata.name.clone().unwrap_or_default();
    (metadata.namespace.clone(), name)
}

fn reference<K: Resource<DynamicType = ()>>(metadata: &ObjectMeta) -> ObjectRef<K> {
    let name = metadata.name.clone().unwrap_or_default();
    let reference = ObjectRef::new(&name);
    match &metadata.namespace {
        Some(namespace) => reference.within(namespace),
        None => reference,
    }
}

#[cfg(test)]
#[path = "unreadable_tests.rs"]
mod tests;
