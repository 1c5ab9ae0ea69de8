//! Values that all clients of an account in a place share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::locking::lock;

/// Values by account and place. A place is a server and a region: a server of a person's own may name
/// any account.
#[derive(Debug)]
pub struct ByAccount<V>(Mutex<BTreeMap<(String, String), Arc<V>>>);

impl<V: Default> ByAccount<V> {
    /// The value of an account in a place.
    pub fn of(&self, account: &str, place: &str) -> Arc<V> {
        let key = (account.to_owned(), place.to_owned());
        lock(&self.0).entry(key).or_default().clone()
    }
}

impl<V> Default for ByAccount<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
