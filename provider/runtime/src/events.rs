//! Events on transitions.
//!
//! Crossplane grants providers `events` of the core group only, so these are core/v1 events. kube's
//! own recorder writes `events.k8s.io`.

mod combined;
mod recent;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde_json::json;
use tokio::sync::Semaphore;

use combined::{MESSAGE_LIMIT, combined};
use recent::{Recent, Written};

pub use crate::happened::Happened;
use crate::metrics::happened::EventCounts;

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
    recent: Arc<Recent>,
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
            recent: Arc::default(),
        }
    }

    /// Writes events about `resource` in the background: the work that they describe does not wait
    /// for the API server.
    pub fn tell<K>(&self, resource: &K, happened: &[Happened], now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        for event in self.events(resource, happened, now) {
            let Ok(place) = self.waiting.clone().try_acquire_owned() else {
                tracing::warn!(reason = event.reason, event.message, "too many events");
                continue;
            };
            let events = self.clone();
            tokio::spawn(async move {
                // The semaphore is never closed.
                let turn = events.writing.acquire().await;
                events.write(&event, now).await;
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
        for event in self.events(resource, happened, now) {
            self.write(&event, now).await;
        }
    }

    /// Counts the changes, and returns the events that tell them.
    fn events<K>(&self, resource: &K, happened: &[Happened], now: Timestamp) -> Vec<Event>
    where
        K: Resource<DynamicType = ()>,
    {
        for one in happened {
            self.counts.count(one);
        }
        let reference = resource.object_ref(&());
        let events = combined(happened).into_iter();
        let event = |(one, count)| event(&reference, self.component, &one, count, now);
        events.map(event).collect()
    }

    /// Writes an event, or counts it in the same event that was written before.
    async fn write(&self, event: &Event, now: Timestamp) {
        let slot = self.recent.of(event);
        let mut written = slot.lock().await;
        let before = written.take().filter(|before| before.is_young(now));
        let result = match before {
            Some(before) => self.count(event, before, now).await,
            None => self.create(event, now).await,
        };
        match result {
            Ok(last) => *written = last,
            Err(error) => tracing::warn!(%error, reason = event.reason, "cannot write an event"),
        }
    }

    async fn create(&self, event: &Event, now: Timestamp) -> Result<Option<Written>, kube::Error> {
        let created = self
            .api(event)
            .create(&PostParams::default(), event)
            .await?;
        let count = event.count.unwrap_or(1);
        let written = |name| Written {
            name,
            count,
            at: now,
        };
        Ok(created.metadata.name.map(written))
    }

    async fn count(
        &self,
        event: &Event,
        before: Written,
        now: Timestamp,
    ) -> Result<Option<Written>, kube::Error> {
        let count = before.count.saturating_add(event.count.unwrap_or(1));
        let patch = json!({"count": count, "lastTimestamp": event.last_timestamp});
        let (api, params) = (self.api(event), PatchParams::default());
        match api.patch(&before.name, &params, &Patch::Merge(patch)).await {
            // Somebody deleted it.
            Err(kube::Error::Api(status)) if status.is_not_found() => self.create(event, now).await,
            Err(error) => Err(error),
            Ok(_) => Ok(Some(Written {
                count,
                at: now,
                ..before
            })),
        }
    }

    fn api(&self, event: &Event) -> Api<Event> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn event(
    reference: &ObjectReference,
    component: &str,
    happened: &Happened,
    count: i32,
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
        count: Some(count),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ListParams;

    use super::*;
    use crate::metrics::Metrics;
    use memory_api_server::ApiServer;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn events(server: &ApiServer) -> Events {
        let counts = EventCounts::new(&Metrics::new(), "events", "Events");
        Events::new(server.client(), "provider", counts)
    }

    fn pool() -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some("team".into());
        object.metadata.name = Some("pool".into());
        object
    }

    /// The message and the count of each event that the API server has.
    async fn stored(server: &ApiServer) -> Vec<(String, i32)> {
        let api: Api<Event> = Api::namespaced(server.client(), "team");
        let all = api.list(&ListParams::default()).await.unwrap();
        let told = |event: Event| (event.message.unwrap(), event.count.unwrap());
        all.items.into_iter().map(told).collect()
    }

    #[tokio::test]
    async fn work_does_not_wait_for_its_events_and_none_is_lost_at_the_end() {
        let server = ApiServer::default();
        let events = events(&server);
        for number in 0..100 {
            let happened = Happened::normal("Terminated", format!("terminated i-{number}"));
            events.tell(&pool(), &[happened], NOW);
        }
        assert_eq!(server.events(), 0, "it waited for the API server");
        events.written(Duration::from_secs(10)).await;
        assert_eq!(server.events(), 100);
    }

    #[tokio::test]
    async fn more_events_than_fit_are_dropped() {
        let server = ApiServer::default();
        let events = events(&server);
        for number in 0..1200 {
            let happened = Happened::normal("Terminated", format!("terminated i-{number}"));
            events.tell(&pool(), &[happened], NOW);
        }
        events.written(Duration::from_secs(10)).await;
        assert_eq!(server.events(), usize::from(WAITING));
    }

    #[tokio::test]
    async fn what_happens_again_is_counted_in_one_event() {
        let server = ApiServer::default();
        let events = events(&server);
        let late = [Happened::warning("Late", "EC2 is late")];
        let early = [Happened::warning("Late", "EC2 is early")];
        for happened in [&late, &early, &late, &late] {
            events.publish(&pool(), happened, NOW).await;
        }
        let expected = [
            ("EC2 is late".to_owned(), 3),
            ("EC2 is early".to_owned(), 1),
        ];
        assert_eq!(stored(&server).await, expected);
        let later = NOW + SignedDuration::from_hours(1);
        events.publish(&pool(), &late, later).await;
        assert_eq!(
            server.events(),
            3,
            "the API server forgets it after an hour"
        );
    }

    #[tokio::test]
    async fn an_event_that_somebody_deleted_is_written_anew() {
        let server = ApiServer::default();
        let events = events(&server);
        let late = [Happened::warning("Late", "EC2 is late")];
        events.publish(&pool(), &late, NOW).await;
        let api: Api<Event> = Api::namespaced(server.client(), "team");
        let all = api.list(&ListParams::default()).await.unwrap();
        let name = all.items[0].metadata.name.clone().unwrap();
        server.remove(&format!("/api/v1/namespaces/team/events/{name}"));
        events.publish(&pool(), &late, NOW).await;
        assert_eq!(stored(&server).await, [("EC2 is late".to_owned(), 1)]);
    }
}
