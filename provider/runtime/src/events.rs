//! Events on transitions.
//!
//! Crossplane grants providers `events` of the core group only, so these are core/v1 events. kube's
//! own recorder writes `events.k8s.io`.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};

pub use crate::happened::Happened;
use crate::metrics::happened::EventCounts;

/// The longest message that the API server accepts.
const MESSAGE_LIMIT: usize = 1024;

/// Writes and counts events of one component.
#[derive(Clone)]
pub struct Events {
    client: Client,
    component: &'static str,
    counts: EventCounts,
}

impl Events {
    /// Events of a component, for example a controller.
    pub fn new(client: Client, component: &'static str, counts: EventCounts) -> Self {
        Self {
            client,
            component,
            counts,
        }
    }

    /// Writes events about `resource`. An event that cannot be written is only logged, because it
    /// must not delay the work that it describes.
    pub async fn publish<K>(&self, resource: &K, happened: &[Happened], now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        let reference = resource.object_ref(&());
        let namespace = reference.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        for one in happened {
            self.counts.count(one);
            let event = event(&reference, self.component, one, now);
            if let Err(error) = api.create(&PostParams::default(), &event).await {
                tracing::warn!(%error, reason = one.reason, "cannot write an event");
            }
        }
    }
}

fn event(
    reference: &ObjectReference,
    component: &str,
    happened: &Happened,
    now: Timestamp,
) -> Event {
    let name = reference.name.as_deref().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}.")),
            namespace: reference.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: reference.clone(),
        type_: Some(happened.type_().to_owned()),
        reason: Some(happened.reason.to_owned()),
        message: Some(happened.message.chars().take(MESSAGE_LIMIT).collect()),
        source: Some(EventSource {
            component: Some(component.to_owned()),
            host: None,
        }),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}
