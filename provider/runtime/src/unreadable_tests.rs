use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use kube::runtime::reflector::store::Writer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::metrics::happened::EventCounts;
use memory_api_server::ApiServer;

/// A kind with a field that not every text fits into.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.org", version = "v1", kind = "Lamp", namespaced)]
struct LampSpec {
    until: Time,
}

const PATH: &str = "/apis/example.org/v1/namespaces/default/lamps/bad";

fn lamp(name: &str, until: &str) -> Value {
    json!({
        "apiVersion": "example.org/v1",
        "kind": "Lamp",
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "7",
            "generation": 3,
        },
        "spec": {"until": until},
        "status": {"watts": 60},
    })
}

fn guarded(object: Value) -> DeserializeGuard<Lamp> {
    serde_json::from_value(object).unwrap()
}

fn good(name: &str) -> DeserializeGuard<Lamp> {
    guarded(lamp(name, "2026-01-01T00:00:00Z"))
}

fn bad() -> DeserializeGuard<Lamp> {
    guarded(lamp("bad", "hunter2"))
}

/// A watch's store behind its reader.
struct Watch {
    writer: Writer<Lamp>,
    reader: Reader<Lamp>,
}

impl Watch {
    fn new() -> Self {
        let writer = Writer::default();
        let reader = Reader::new(writer.as_reader(), Unreadable::default());
        Self { writer, reader }
    }

    /// Returns the names of the objects that people are told about.
    fn see(&mut self, event: Event<DeserializeGuard<Lamp>>) -> Vec<String> {
        let (event, news) = self.reader.read(event);
        if let Some(event) = event {
            self.writer.apply_watcher_event(&event);
        }
        news.into_iter()
            .filter_map(|metadata| metadata.name)
            .collect()
    }

    fn names(&self) -> Vec<String> {
        let objects = self.writer.as_reader().state();
        let mut names: Vec<_> = objects.iter().map(|one| one.name_any()).collect();
        names.sort();
        names
    }

    fn is_unreadable(&self, name: &str) -> bool {
        let object = ObjectRef::new(name).within("default");
        self.reader.unreadable.contains(&object)
    }
}

#[test]
fn one_object_that_cannot_be_read_does_not_keep_the_others_from_the_list() {
    let mut watch = Watch::new();
    for event in [
        Event::Init,
        Event::InitApply(good("a")),
        Event::InitApply(bad()),
        Event::InitApply(good("b")),
    ] {
        assert!(watch.see(event).is_empty());
    }
    assert_eq!(watch.see(Event::InitDone), ["bad"]);
    assert_eq!(watch.names(), ["a", "b"]);
    assert!(watch.is_unreadable("bad") && !watch.is_unreadable("a"));
}

#[test]
fn the_same_object_is_told_about_once_in_repeated_lists() {
    let mut watch = Watch::new();
    let mut list = |version: Option<&str>| {
        watch.see(Event::Init);
        if let Some(version) = version {
            let mut object = bad();
            object.meta_mut().resource_version = Some(version.to_owned());
            watch.see(Event::InitApply(object));
        }
        let told = watch.see(Event::InitDone);
        (told, watch.is_unreadable("bad"))
    };
    assert_eq!(list(Some("7")), (vec!["bad".to_owned()], true));
    assert_eq!(list(Some("7")), (vec![], true));
    assert_eq!(list(Some("8")), (vec!["bad".to_owned()], true));
    assert_eq!(list(None), (vec![], false));
}

#[test]
fn an_object_is_not_acted_on_by_an_old_version_while_its_newest_cannot_be_read() {
    let mut watch = Watch::new();
    watch.see(Event::Apply(good("bad")));
    assert_eq!(watch.names(), ["bad"]);
    assert_eq!(watch.see(Event::Apply(bad())), ["bad"]);
    assert!(watch.names().is_empty());
    assert!(watch.is_unreadable("bad"));
    watch.see(Event::Apply(good("bad")));
    assert_eq!(watch.names(), ["bad"]);
    assert!(!watch.is_unreadable("bad"));
}

#[test]
fn a_deleted_object_is_no_longer_counted_as_unreadable() {
    let mut watch = Watch::new();
    watch.see(Event::Apply(bad()));
    assert!(watch.see(Event::Delete(bad())).is_empty());
    assert!(!watch.is_unreadable("bad"));
    watch.see(Event::Apply(bad()));
    watch.see(Event::Delete(good("bad")));
    assert!(!watch.is_unreadable("bad"));
}

fn reports(server: &ApiServer, metrics: &Metrics) -> Reports {
    let counts = EventCounts::new(metrics, "thing_events", "Events");
    let events = Events::new(server.client(), "provider", counts);
    Reports::new(server.client(), events, metrics, "unreadable_objects")
}

fn event(server: &ApiServer) -> Value {
    let path = (0..9).map(|n| format!("/api/v1/namespaces/default/events/generated-{n}"));
    let mut found = path.filter_map(|path| server.object(&path));
    found.next().expect("an event")
}

#[tokio::test]
async fn people_are_told_the_field_and_never_its_value() {
    let server = ApiServer::default();
    server.put(PATH, lamp("bad", "hunter2"));
    let metrics = Metrics::new();
    let reports = reports(&server, &metrics);
    let metadata = bad().meta().clone();
    reports.tell::<Lamp>(metadata.clone()).await;
    let event = event(&server);
    let message = event["message"].as_str().unwrap();
    assert!(message.starts_with("spec.until: this version"), "{message}");
    assert_eq!(event["involvedObject"]["kind"], "Lamp");
    assert_eq!(event["involvedObject"]["name"], "bad");
    let status = server.object(PATH).unwrap()["status"].clone();
    assert_eq!(status["watts"], 60, "the rest of the status stays");
    let synced = &status["conditions"][0];
    assert_eq!(synced["status"], "False");
    assert_eq!(synced["observedGeneration"], 3);
    assert!(synced["message"].as_str().unwrap().contains(message));
    assert!(!format!("{event}{status}").contains("hunter2"));

    // The condition itself is a change, which the watch shows.
    reports.tell::<Lamp>(metadata).await;
    assert_eq!(server.writes(), 1);
    assert_eq!(server.events(), 1);
}

#[tokio::test]
async fn an_object_whose_conditions_cannot_be_read_keeps_them() {
    let server = ApiServer::default();
    let mut object = lamp("bad", "hunter2");
    object["status"]["conditions"] = json!([{"type": "Synced", "status": "Perhaps"}]);
    server.put(PATH, object.clone());
    let metrics = Metrics::new();
    reports(&server, &metrics)
        .tell::<Lamp>(bad().meta().clone())
        .await;
    assert_eq!(server.events(), 1);
    assert_eq!(server.object(PATH).unwrap()["status"], object["status"]);
}

#[tokio::test]
async fn an_alert_sees_how_many_objects_cannot_be_read() {
    let metrics = Metrics::new();
    let reports = reports(&ApiServer::default(), &metrics);
    let mut watch = Watch::new();
    let mut shows = |event, count: usize| {
        let (_, news) = watch.reader.read(event);
        watch.reader.report(&reports, news);
        let sample = format!("unreadable_objects{{gvk=\"example.org/v1, Kind=Lamp\"}} {count}");
        let text = metrics.prometheus_text();
        assert!(
            text.lines().any(|line| line == sample),
            "{sample} in\n{text}"
        );
    };
    shows(Event::Apply(good("a")), 0);
    shows(Event::Apply(bad()), 1);
    shows(Event::Delete(bad()), 0);
}
