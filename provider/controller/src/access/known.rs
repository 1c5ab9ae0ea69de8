//! A cache of resolved accesses.

use std::collections::BTreeMap;
use std::sync::Mutex;

use api::managed::{ProviderConfigKind, ProviderConfigReference};
use jiff::{SignedDuration, Timestamp};
use kube::Client;

use super::error::ConnectError;
use super::{Resolved, Rights, resolve};
use crate::locking::lock;

/// How long a cached Secret counts as unchanged. A changed configuration is read again at once.
const BELIEVED: SignedDuration = SignedDuration::from_secs(10);
/// How long a cached Secret is used while one reconcile reads it again. A busy API server takes
/// seconds for that, and a hundred concurrent reads keep it busy.
const BELIEVED_MEANWHILE: SignedDuration = SignedDuration::from_mins(1);

/// The cache. If a thousand pools are reconciled in a minute, another pool read the same objects
/// seconds ago. Failures are not cached.
#[derive(Default)]
pub struct Known {
    rights: Rights,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    resolved: BTreeMap<Key, Entry>,
    /// The number of calls of [`Known::forget`]. The result of a read that began before such a call
    /// is not cached.
    forgotten: u64,
}

struct Entry {
    resolved: Resolved,
    at: Timestamp,
    read_again_at: Timestamp,
}

impl Entry {
    fn new(resolved: Resolved, at: Timestamp) -> Self {
        Self {
            resolved,
            at,
            read_again_at: later(at),
        }
    }

    /// The cached access. `None` for the one caller that has to read it again.
    fn believed(&mut self, now: Timestamp) -> Option<Resolved> {
        let is_old = now.duration_since(self.at) >= BELIEVED_MEANWHILE;
        if is_old || now >= self.read_again_at {
            self.read_again_at = later(now);
            return None;
        }
        Some(self.resolved.clone())
    }
}

fn later(now: Timestamp) -> Timestamp {
    now.saturating_add(BELIEVED).unwrap_or(Timestamp::MAX)
}

type Key = (ProviderConfigKind, Option<String>, String);

impl Known {
    /// An empty cache. What it reads is refused beyond these rights.
    pub fn new(rights: Rights) -> Self {
        Self {
            rights,
            memory: Mutex::default(),
        }
    }

    /// What the provider's flags permit to a `ProviderConfig`.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// The access that a pool of `namespace` refers to.
    ///
    /// # Errors
    ///
    /// See [`resolve`].
    pub async fn resolve(
        &self,
        client: &Client,
        namespace: &str,
        reference: &ProviderConfigReference,
        now: Timestamp,
    ) -> Result<Resolved, ConnectError> {
        let key = key(reference.kind, Some(namespace), &reference.name);
        let read = resolve(client, namespace, reference, &self.rights);
        self.remembered(key, now, read).await
    }

    async fn remembered(
        &self,
        key: Key,
        now: Timestamp,
        read: impl Future<Output = Result<Resolved, ConnectError>>,
    ) -> Result<Resolved, ConnectError> {
        let forgotten = {
            let mut memory = lock(&self.memory);
            let found = memory.resolved.get_mut(&key);
            if let Some(resolved) = found.and_then(|entry| entry.believed(now)) {
                return Ok(resolved);
            }
            memory.forgotten
        };
        let read = read.await;
        let mut memory = lock(&self.memory);
        match &read {
            Ok(resolved) if memory.forgotten == forgotten => {
                let entry = Entry::new(resolved.clone(), now);
                memory.resolved.insert(key, entry);
            }
            Ok(_) => {}
            Err(_) => drop(memory.resolved.remove(&key)),
        }
        read
    }

    /// Removes a configuration from the cache, because it changed or because a user asked for a
    /// reconcile now.
    pub fn forget(&self, kind: ProviderConfigKind, namespace: Option<&str>, name: &str) {
        let mut memory = lock(&self.memory);
        memory.forgotten += 1;
        memory.resolved.remove(&key(kind, namespace, name));
    }
}

/// The key of a configuration. A `ClusterProviderConfig` has no namespace, whatever the namespace
/// of the pool is.
fn key(kind: ProviderConfigKind, namespace: Option<&str>, name: &str) -> Key {
    let namespace = match kind {
        ProviderConfigKind::ClusterProviderConfig => None,
        ProviderConfigKind::ProviderConfig => namespace.map(str::to_owned),
    };
    (kind, namespace, name.to_owned())
}

#[cfg(test)]
mod tests {
    use provider_aws::{Access, Credentials};

    use super::*;
    use crate::access::{Origin, tests::config};

    const CLUSTER: ProviderConfigKind = ProviderConfigKind::ClusterProviderConfig;
    const OWN: ProviderConfigKind = ProviderConfigKind::ProviderConfig;

    fn resolved(number: u8) -> Resolved {
        Resolved {
            access: Access {
                credentials: Credentials::Unsigned,
                roles: Vec::new(),
                endpoint: None,
            },
            queues: BTreeMap::new(),
            fingerprint: [number; 32],
            origin: Origin::of(&config(
                None,
                serde_json::json!({"credentials": {"source": "None"}}),
            )),
        }
    }

    async fn ask(known: &Known, at: i64, found: u8) -> u8 {
        let now = Timestamp::from_second(at).unwrap();
        let key = key(CLUSTER, Some("team"), "default");
        let read = async { Ok(resolved(found)) };
        known.remembered(key, now, read).await.unwrap().fingerprint[0]
    }

    async fn refuse(known: &Known, at: i64) {
        let now = Timestamp::from_second(at).unwrap();
        let key = key(CLUSTER, Some("team"), "default");
        let reference = ProviderConfigReference::default();
        let read = async { Err(ConnectError::NoConfig((&reference).into())) };
        assert!(known.remembered(key, now, read).await.is_err());
    }

    #[tokio::test]
    async fn a_rotated_secret_is_noticed_seconds_later() {
        let known = Known::default();
        assert_eq!(ask(&known, 0, 1).await, 1);
        assert_eq!(ask(&known, 9, 2).await, 1);
        assert_eq!(ask(&known, 10, 2).await, 2);
    }

    #[tokio::test]
    async fn a_hundred_pools_do_not_read_the_same_secret_at_the_same_time() {
        let known = Known::default();
        assert_eq!(ask(&known, 0, 1).await, 1);
        let key = key(CLUSTER, None, "default");
        let now = Timestamp::from_second(10).unwrap();
        let slow = async {
            assert_eq!(ask(&known, 11, 3).await, 1, "while one reads");
            assert_eq!(ask(&known, 20, 3).await, 3, "who took too long");
            Ok(resolved(2))
        };
        known.remembered(key, now, slow).await.unwrap();
        assert_eq!(ask(&known, 85, 4).await, 4, "a minute later");
    }

    #[tokio::test]
    async fn a_changed_configuration_is_noticed_at_once() {
        let known = Known::default();
        assert_eq!(ask(&known, 0, 1).await, 1);
        known.forget(CLUSTER, Some("of whoever asks"), "default");
        assert_eq!(ask(&known, 1, 2).await, 2);
        known.forget(OWN, Some("team"), "default");
        assert_eq!(ask(&known, 2, 3).await, 2);
    }

    #[tokio::test]
    async fn a_read_that_began_before_a_change_is_not_cached() {
        let known = Known::default();
        let key = key(CLUSTER, None, "default");
        let read = async {
            known.forget(CLUSTER, None, "default");
            Ok(resolved(1))
        };
        let found = known.remembered(key, Timestamp::UNIX_EPOCH, read).await;
        assert_eq!(found.unwrap().fingerprint[0], 1);
        assert_eq!(ask(&known, 1, 2).await, 2);
    }

    #[tokio::test]
    async fn a_failed_read_is_not_cached() {
        let known = Known::default();
        refuse(&known, 0).await;
        assert_eq!(ask(&known, 0, 2).await, 2);
        refuse(&known, 10).await;
        assert_eq!(ask(&known, 11, 3).await, 3, "what is gone is not believed");
    }
}
