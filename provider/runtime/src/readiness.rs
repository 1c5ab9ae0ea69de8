//! Whether the process is ready, and what it waits for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a process still waits for. It is ready when that is nothing. Clones share
/// the list.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<String, usize>>>);

/// One thing that a process waits for. When it is dropped unfinished, whoever
/// waited has failed, and the process is not ready for good.
#[derive(Debug)]
#[must_use]
pub struct Waiting {
    what: String,
    readiness: Readiness,
}

impl Readiness {
    /// The process is not ready until the answer is finished. `what` is for
    /// people.
    pub fn wait_for(&self, what: impl Into<String>) -> Waiting {
        let what = what.into();
        *self.waits().entry(what.clone()).or_default() += 1;
        Waiting {
            what,
            readiness: self.clone(),
        }
    }

    /// What is waited for, sorted.
    pub fn missing(&self) -> Vec<String> {
        self.waits().keys().cloned().collect()
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// It is there.
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
