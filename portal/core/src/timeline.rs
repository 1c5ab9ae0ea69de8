//! What has happened to a workspace, as far as it is still known.
//!
//! Neither Crossplane nor the portal keeps a history. A condition tells its last change only. The API server deletes
//! events after a time (an hour by default). So each entry names its source, and an entry that is not there proves nothing.

use devctl_core::object::{list, text, time};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// Who knows it.
    pub source: Source,
    /// What, in one word: a field, a condition with its status, or the reason of an event.
    pub what: String,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How often, if an event has come again.
    pub count: u64,
    /// Whether a person should look at it.
    pub is_warning: bool,
}

/// Who knows that something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Source {
    /// The claim itself.
    Claim,
    /// Its lifecycle.
    Lifecycle,
    /// A condition, of which only the last change is known.
    Condition,
    /// An event.
    Event,
}

/// The times of `status.lifecycle` that have passed.
const TIMES: [&str; 4] = ["startedAt", "readyAt", "stoppedAt", "deletedAt"];

/// The entries of a claim and its events, the latest first.
pub fn timeline(claim: &Value, events: &[Value]) -> Vec<Entry> {
    let of_claim = ["creationTimestamp", "deletionTimestamp"].map(|field| {
        let at = time(claim, &format!("/metadata/{field}"))?;
        Some(Entry::new(at, Source::Claim, field))
    });
    let of_lifecycle = TIMES.map(|field| {
        let at = time(claim, &format!("/status/lifecycle/{field}"))?;
        Some(Entry::new(at, Source::Lifecycle, field))
    });
    let conditions = list(claim, "/status/conditions").iter().map(of_condition);
    let events = events.iter().map(of_event);
    let all = of_claim.into_iter().chain(of_lifecycle);
    let mut entries: Vec<Entry> = all.chain(conditions).chain(events).flatten().collect();
    entries.sort_by(|one, other| {
        let order = |entry: &Entry| (entry.at, entry.source, entry.what.clone());
        order(other).cmp(&order(one))
    });
    entries
}

impl Entry {
    fn new(at: Timestamp, source: Source, what: impl Into<String>) -> Self {
        Self {
            at,
            source,
            what: what.into(),
            message: None,
            count: 1,
            is_warning: false,
        }
    }
}

fn of_condition(condition: &Value) -> Option<Entry> {
    let at = time(condition, "/lastTransitionTime")?;
    let status = text(condition, "/status")?;
    let what = format!("{}={status}", text(condition, "/type")?);
    let said = [text(condition, "/reason"), text(condition, "/message")];
    Some(Entry {
        message: joined(said),
        ..Entry::new(at, Source::Condition, what)
    })
}

fn of_event(event: &Value) -> Option<Entry> {
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/firstTimestamp",
    ];
    let at = times.iter().find_map(|field| time(event, field))?;
    let counts = ["/series/count", "/count"];
    let count = counts
        .iter()
        .find_map(|field| event.pointer(field)?.as_u64());
    Some(Entry {
        message: joined([text(event, "/message")]),
        count: count.unwrap_or(1),
        is_warning: text(event, "/type") == Some("Warning"),
        ..Entry::new(at, Source::Event, text(event, "/reason")?)
    })
}

fn joined<const N: usize>(parts: [Option<&str>; N]) -> Option<String> {
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join(": ");
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_comes_first_and_each_entry_names_its_source() {
        let claim = json!({
            "metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"},
            "status": {
                "lifecycle": {
                    "startedAt": "2026-01-01T10:02:00Z", "stopsAt": "2026-01-01T20:00:00Z",
                },
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "Available",
                     "lastTransitionTime": "2026-01-01T10:05:00Z"},
                    {"type": "Ill", "status": "True", "lastTransitionTime": "yesterday"},
                ],
            },
        });
        let events = [
            json!({
                "type": "Warning", "reason": "NoCapacity", "message": "there is no machine",
                "lastTimestamp": "2026-01-01T10:01:00Z", "count": 3,
            }),
            json!({"reason": "Never"}),
        ];
        let entries = timeline(&claim, &events);
        let told: Vec<_> = entries
            .iter()
            .map(|entry| {
                (
                    entry.source,
                    entry.what.as_str(),
                    entry.count,
                    entry.is_warning,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (Source::Condition, "Ready=True", 1, false),
                (Source::Lifecycle, "startedAt", 1, false),
                (Source::Event, "NoCapacity", 3, true),
                (Source::Claim, "creationTimestamp", 1, false),
            ]
        );
        assert_eq!(entries[0].message.as_deref(), Some("Available"));
        // A stop that is to come has not happened.
        assert!(entries.iter().all(|entry| entry.what != "stopsAt"));
    }

    #[test]
    fn an_event_that_came_again_has_its_last_time() {
        let event = json!({
            "reason": "Restarted", "eventTime": "2026-01-01T10:00:00.5Z",
            "series": {"count": 7, "lastObservedTime": "2026-01-01T11:00:00Z"},
        });
        let entries = timeline(&json!({}), &[event]);
        assert_eq!(entries[0].at.to_string(), "2026-01-01T11:00:00Z");
        assert_eq!(entries[0].count, 7);
    }
}
