//! Events on transitions.
//!
//! Crossplane grants providers `events` of the core group only, so these are core/v1 events. kube's
//! own recorder writes `events.k8s.io`.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use tokio::sync::Semaphore;

pub use crate::happened::Happened;
use crate::metrics::happened::EventCounts;

/// The longest message that the API server accepts.
const MESSAGE_LIMIT: usize = 1024;

/// The most events that wait to be written. Further ones are only logged: a pool of many instances
/// must not use up the memory while the API server is slow.
const WAITING: u16 = 1000;
/// How many events are written at once.
const AT_ONCE: usize = 4;

/// Writes and counts events of one component.
#[derive(Clone)]
pub struct Events {
    client: Client,
    component: &'static str,
    counts: EventCounts,
    /// A permit for each event that may wait.
    waiting: Arc<Semaphore>,
    /// A permit for each event that may be written now.
    writing: Arc<Semaphore>,
}

impl Events {
    /// Events of a component, for example a controller.
    pub fn new(client: Client, component: &'static str, counts: EventCounts) -> Self {
        Self {
            client,
            component,
            counts,
            waiting: Arc::new(Semaphore::new(usize::from(WAITING))),
            writing: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Writes events about `resource` in the background: the work that they describe does not wait
    /// for the API server.
    pub fn tell<K>(&self, resource: &K, happened: &[Happened], now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        let reference = resource.object_ref(&());
        for one in happened {
            self.counts.count(one);
            let Ok(place) = self.waiting.clone().try_acquire_owned() else {
                tracing::warn!(reason = one.reason, one.message, "too many events");
                continue;
            };
            let event = event(&reference, self.component, one, now);
            let events = self.clone();
            tokio::spawn(async move {
                // The semaphore is never closed.
                let turn = events.writing.acquire().await;
                events.write(&event).await;
                drop((turn, place));
            });
        }
    }

    /// Returns when no event waits any more, or after this time.
    pub async fn written(&self, within: Duration) {
        let all = self.waiting.acquire_many(WAITING.into());
        if tokio::time::timeout(within, all).await.is_err() {
            tracing::warn!("some events were not written");
        }
    }

    /// Writes events about `resource`, and returns when they are written. An event that cannot be
    /// written is only logged, because it must not delay the work that it describes.
    pub async fn publish<K>(&self, resource: &K, happened: &[Happened], now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        let reference = resource.object_ref(&());
        for one in happened {
            self.counts.count(one);
            let event = event(&reference, self.component, one, now);
            self.write(&event).await;
        }
    }

    async fn write(&self, event: &Event) {
        let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if let Err(error) = api.create(&PostParams::default(), event).await {
            tracing::warn!(%error, reason = event.reason, "cannot write an event");
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::metrics::Metrics;
    use crate::testing::ApiServer;

    #[tokio::test]
    async fn work_does_not_wait_for_its_events_and_none_is_lost_at_the_end() {
        let server = ApiServer::default();
        let counts = EventCounts::new(&Metrics::new(), "events", "Events");
        let events = Events::new(server.client(), "provider", counts);
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some("team".into());
        object.metadata.name = Some("pool".into());
        let happened = vec![Happened::normal("Terminated", "terminated i-1"); 100];
        events.tell(&object, &happened, Timestamp::UNIX_EPOCH);
        assert_eq!(server.events(), 0, "it waited for the API server");
        events.written(Duration::from_secs(10)).await;
        assert_eq!(server.events(), 100);
    }

    #[tokio::test]
    async fn more_events_than_fit_are_dropped() {
        let server = ApiServer::default();
        let counts = EventCounts::new(&Metrics::new(), "events", "Events");
        let events = Events::new(server.client(), "provider", counts);
        let object = ConfigMap::default();
        let happened = vec![Happened::normal("Terminated", "terminated i-1"); 1200];
        events.tell(&object, &happened, Timestamp::UNIX_EPOCH);
        events.written(Duration::from_secs(10)).await;
        assert_eq!(server.events(), usize::from(WAITING));
    }
}
