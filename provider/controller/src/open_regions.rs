//! The regions that some pool uses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::access::Fingerprint;
use crate::locking::lock;
use crate::region::Region;

/// The fingerprint of the credentials, and the region's name.
pub type Key = (Fingerprint, String);

/// The regions that some pool uses, by credentials and name.
#[derive(Default)]
pub struct OpenRegions(Mutex<BTreeMap<Key, Arc<Region>>>);

impl OpenRegions {
    /// Every region at this moment.
    pub fn all(&self) -> Vec<Arc<Region>> {
        self.by_key().values().cloned().collect()
    }

    /// The regions by key.
    pub fn by_key(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Region>>> {
        lock(&self.0)
    }
}
