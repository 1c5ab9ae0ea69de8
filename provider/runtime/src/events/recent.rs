//! The events that were written lately. A change that happens again is counted in its event, so a
//! condition that flaps makes one event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;

/// How long an event counts what happens again. The API server keeps an event for an hour after its
/// last write.
const LIFE: SignedDuration = SignedDuration::from_mins(50);
/// The most events that are remembered. With more, all are forgotten, and written anew when they
/// happen again.
const MOST: usize = 1000;

/// The last write of an event. Its lock is held during the next one.
type Slot = Arc<tokio::sync::Mutex<Option<Written>>>;

/// An event that the API server has.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) count: i32,
    pub(super) at: Timestamp,
}

impl Written {
    /// Whether the API server still has the event at this time.
    pub(super) fn is_young(&self, now: Timestamp) -> bool {
        now.duration_since(self.at) < LIFE
    }
}

/// The subject, the reason and the message of an event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key([Option<String>; 4]);

#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<BTreeMap<Key, Slot>>);

impl Recent {
    /// The last write of the same event.
    pub(super) fn of(&self, event: &Event) -> Slot {
        let subject = &event.involved_object;
        let name = subject.uid.clone().or_else(|| subject.name.clone());
        let key = Key([
            subject.namespace.clone(),
            name,
            event.reason.clone(),
            event.message.clone(),
        ]);
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST && !slots.contains_key(&key) {
            slots.clear();
        }
        slots.entry(key).or_default().clone()
    }
}
