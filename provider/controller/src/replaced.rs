//! The versions of pools that this process has replaced.
//!
//! The watch shows a write only later, and a busy API server shows it seconds later. A reconcile of
//! the version before would do its work, and then the API server would refuse its first write. While
//! a thousand pools end in one minute, this was true for every second write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use api::pool::{SpotPool, SpotPoolStatus};
use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::locking::lock;
use crate::status_writer::PoolStore;

/// The replaced versions of each pool, by UID.
#[derive(Debug, Default)]
pub(crate) struct Replaced(Mutex<BTreeMap<String, BTreeSet<String>>>);

impl Replaced {
    /// Whether this process has replaced the version. A version that it has not replaced makes it
    /// forget those before.
    pub(crate) fn is_outdated(&self, meta: &ObjectMeta) -> bool {
        let Some((uid, version)) = key(meta) else {
            return false;
        };
        let mut all = lock(&self.0);
        let is_outdated = all
            .get(uid)
            .is_some_and(|versions| versions.contains(version));
        if !is_outdated {
            all.remove(uid);
        }
        is_outdated
    }

    /// Notes a write. A write that changed nothing replaced nothing.
    pub(crate) fn note(&self, before: &ObjectMeta, after: &ObjectMeta) {
        let Some((uid, version)) = key(before) else {
            return;
        };
        if before.resource_version != after.resource_version {
            let mut all = lock(&self.0);
            all.entry(uid.to_owned())
                .or_default()
                .insert(version.to_owned());
        }
    }

    /// Forgets a pool that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        lock(&self.0).remove(uid);
    }
}

fn key(meta: &ObjectMeta) -> Option<(&str, &str)> {
    Some((meta.uid.as_deref()?, meta.resource_version.as_deref()?))
}

/// A store of pools that notes each version that it replaces.
pub(crate) struct Noting<'a, S> {
    pub(crate) store: S,
    pub(crate) replaced: &'a Replaced,
}

#[async_trait]
impl<S: PoolStore> PoolStore for Noting<'_, S> {
    async fn write_status(
        &self,
        pool: &SpotPool,
        status: &SpotPoolStatus,
    ) -> Result<SpotPool, kube::Error> {
        let written = self.store.write_status(pool, status).await?;
        self.replaced.note(&pool.metadata, &written.metadata);
        Ok(written)
    }

    async fn release(&self, meta: &ObjectMeta) -> Result<(), kube::Error> {
        self.store.release(meta).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(version: &str) -> ObjectMeta {
        ObjectMeta {
            uid: Some("uid".into()),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_version_that_was_replaced_is_not_reconciled_again_until_a_newer_one_is_shown() {
        let replaced = Replaced::default();
        assert!(!replaced.is_outdated(&meta("1")));
        replaced.note(&meta("1"), &meta("2"));
        replaced.note(&meta("2"), &meta("3"));
        assert!(replaced.is_outdated(&meta("1")), "the watch is behind");
        assert!(replaced.is_outdated(&meta("2")), "and still behind");
        assert!(!replaced.is_outdated(&meta("3")));
        let of_pools = replaced.0.lock().unwrap();
        assert!(of_pools.is_empty(), "the versions before are forgotten");
    }

    #[test]
    fn a_write_that_changed_nothing_keeps_the_pool_from_nothing() {
        let replaced = Replaced::default();
        replaced.note(&meta("1"), &meta("1"));
        assert!(!replaced.is_outdated(&meta("1")));
    }

    #[test]
    fn a_pool_of_the_same_name_is_another_one() {
        let replaced = Replaced::default();
        replaced.note(&meta("1"), &meta("2"));
        let mut other = meta("1");
        other.uid = Some("another".into());
        assert!(!replaced.is_outdated(&other));
    }
}
