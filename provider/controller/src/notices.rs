//! AWS's announcements about instances, until a pool's reconcile uses them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::SignedDuration;
use provider_core::Notice;

use crate::locking::lock;

/// How long an announcement is kept for a pool's next reconcile.
const LIFE: SignedDuration = SignedDuration::from_hours(1);
/// The most announcements that are stored.
const MOST: usize = 10_000;

/// The announcements, by instance id. All regions share them: several configurations may name the
/// same queue, and a message can be read once. AWS never uses the id of an instance again.
#[derive(Debug, Default)]
pub struct Notices(Mutex<BTreeMap<String, Notice>>);

impl Notices {
    /// Stores an announcement, unless a more severe one is stored for the instance. A queue may
    /// have announcements about instances of others: at most [`MOST`] are stored, and then the
    /// oldest goes.
    pub fn store(&self, instance_id: &str, notice: Notice) {
        let mut notices = lock(&self.0);
        notices.retain(|_, old| notice.at.duration_since(old.at) < LIFE);
        if notices.len() >= MOST && !notices.contains_key(instance_id) {
            let oldest = notices.iter().min_by_key(|(_, notice)| notice.at);
            if let Some(id) = oldest.map(|(id, _)| id.clone()) {
                notices.remove(&id);
            }
        }
        let known = notices.entry(instance_id.to_owned()).or_insert(notice);
        *known = notice.max(*known);
    }

    /// The stored announcements, by instance id.
    pub fn all(&self) -> BTreeMap<String, Notice> {
        lock(&self.0).clone()
    }
}
