//! Whether the process is ready, and what it still waits for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The list of things that a process still waits for. The process is ready when the list is empty.
/// Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<String, usize>>>);

/// One thing that a process waits for. If it is dropped before [`Waiting::finish`], the task that
/// waited has failed, and the process never becomes ready.
#[derive(Debug)]
#[must_use]
pub struct Waiting {
    what: String,
    readiness: Readiness,
}

impl Readiness {
    /// Adds a thing to the list: the process is not ready until the result is finished. `what` is
    /// its name for people.
    pub fn wait_for(&self, what: impl Into<String>) -> Waiting {
        let what = what.into();
        *self.waits().entry(what.clone()).or_default() += 1;
        Waiting {
            what,
            readiness: self.clone(),
        }
    }

    /// The names of the things that the process waits for, sorted.
    pub fn missing(&self) -> Vec<String> {
        self.waits().keys().cloned().collect()
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Removes the thing from the list.
    pub fn finish(self) {
        let mut waits = self.readiness.waits();
        if let Some(count) = waits.get_mut(&self.what) {
            *count -= 1;
            if *count == 0 {
                waits.remove(&self.what);
            }
        }
    }
}
