//! Which resources in EC2 belong to a pool or a lease, also after a restore from a backup. Pure.
//!
//! Resources in EC2 carry the UID of their pool or lease as a tag. The API server gives a restored
//! object another UID. So the provider writes the first UID, the *identity*, into an annotation,
//! which a backup contains. A seal proves that the provider wrote the annotation for the object with
//! this kind, namespace and name. Without the seal, a tenant could name the identity of another
//! pool, and take over its instances.

use std::fmt::{self, Write as _};

use api::lease::SpotLease;
use api::managed::IDENTITY;
use api::pool::SpotPool;
use aws_lc_rs::hmac;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

/// The Secret with the key, in the provider's namespace.
pub const SECRET: &str = "provider-gpu-spot-identity";
/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Between an identity and its seal.
const SEPARATOR: char = '.';
/// The bytes of a seal. An attacker cannot try seals except by writing objects.
const SEAL_BYTES: usize = 16;

/// Seals identities with the secret key of this control plane.
#[derive(Clone)]
pub struct Seals {
    key: hmac::Key,
}

/// The identity of a pool or a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The value of the tag in EC2: the first UID of the object.
    pub value: String,
    /// The value with its seal, for the annotation and the status.
    pub sealed: String,
}

/// The values of the tags by which a pool's resources are found.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// The identity of the control plane.
    pub cluster: &'a str,
    /// The identity of the pool.
    pub pool: &'a str,
}

/// An annotation names an identity that the provider did not give to the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "metadata.annotations[{IDENTITY}]: this control plane did not give the identity {claimed} to \
     {kind} {name}: nothing is launched, ended or released. If the object is a copy of another one, \
     remove the annotation. If it was restored from a backup, restore Secret {SECRET} in the \
     provider's namespace too, and restart the provider"
)]
pub struct Unproven {
    claimed: String,
    kind: String,
    name: String,
}

/// A kind whose objects have an identity.
pub trait Identified: Resource<DynamicType = ()> {
    /// The sealed identity in the status. It holds after a client removed the annotation.
    fn recorded(&self) -> Option<&str>;
}

impl Identified for SpotPool {
    fn recorded(&self) -> Option<&str> {
        let status = self.status.as_ref()?;
        status.at_provider.pool_identity.as_deref()
    }
}

impl Identified for SpotLease {
    fn recorded(&self) -> Option<&str> {
        let status = self.status.as_ref()?;
        status.at_provider.lease_identity.as_deref()
    }
}

impl Seals {
    /// Seals with this key.
    pub fn new(key: [u8; KEY_BYTES]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        }
    }

    /// The identity of an object: the one in its status, else the one in its annotation, else its
    /// UID.
    pub fn of<K: Identified>(&self, object: &K) -> Result<Identity, Unproven> {
        self.identify(&K::kind(&()), object.meta(), object.recorded())
    }

    /// The identity of an object; without a proven one, that of an object that is not restored.
    pub fn of_or_first<K: Identified>(&self, object: &K) -> Identity {
        self.of(object).unwrap_or_else(|_| self.first(object))
    }

    /// The identity of an object that is not restored: its UID.
    pub fn first<K: Identified>(&self, object: &K) -> Identity {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        self.seal(&K::kind(&()), object.meta(), uid)
    }

    /// The identity of an object whose status is not known.
    pub fn of_metadata<K: Identified>(&self, meta: &ObjectMeta) -> Result<Identity, Unproven> {
        self.identify(&K::kind(&()), meta, None)
    }

    fn identify(
        &self,
        kind: &str,
        meta: &ObjectMeta,
        recorded: Option<&str>,
    ) -> Result<Identity, Unproven> {
        let uid = meta.uid.as_deref().unwrap_or_default();
        let named = [recorded, annotated(meta)];
        let mut unproven = None;
        for sealed in named.into_iter().flatten() {
            let (value, _) = sealed.split_once(SEPARATOR).unwrap_or((sealed, ""));
            let identity = self.seal(kind, meta, value);
            // The own UID needs no proof. It may have the seal of a key that was lost.
            if value == uid || identity.sealed == sealed {
                return Ok(identity);
            }
            unproven.get_or_insert_with(|| Unproven {
                claimed: value.to_owned(),
                kind: kind.to_owned(),
                name: full_name(meta),
            });
        }
        unproven.map_or_else(|| Ok(self.seal(kind, meta, uid)), Err)
    }

    /// Seals an identity for one object.
    fn seal(&self, kind: &str, meta: &ObjectMeta, value: &str) -> Identity {
        let text = [kind, &full_name(meta), value].join("\0");
        let mac = hmac::sign(&self.key, text.as_bytes());
        let mut sealed = format!("{value}{SEPARATOR}");
        for byte in mac.as_ref().iter().take(SEAL_BYTES) {
            let _ = write!(sealed, "{byte:02x}");
        }
        Identity {
            value: value.to_owned(),
            sealed,
        }
    }
}

/// The key is a secret.
impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seals")
    }
}

impl Identity {
    /// The annotation of the object.
    pub fn annotation(&self) -> (&str, &str) {
        (IDENTITY, &self.sealed)
    }

    /// Whether the object has the annotation.
    pub fn is_written(&self, meta: &ObjectMeta) -> bool {
        annotated(meta) == Some(&self.sealed)
    }
}

/// Whether the object has an annotation with an identity.
pub fn is_annotated(meta: &ObjectMeta) -> bool {
    annotated(meta).is_some()
}

fn annotated(meta: &ObjectMeta) -> Option<&str> {
    let annotations = meta.annotations.as_ref()?;
    annotations.get(IDENTITY).map(String::as_str)
}

fn full_name(meta: &ObjectMeta) -> String {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let name = meta.name.as_deref().unwrap_or_default();
    format!("{namespace}/{name}")
}

/// The seals of tests.
#[cfg(test)]
pub static SEALS: std::sync::LazyLock<Seals> =
    std::sync::LazyLock::new(|| Seals::new([7; KEY_BYTES]));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::pool_for_tests;

    /// A pool as a backup restores it: it has the annotation, another UID, and no status.
    fn restored() -> SpotPool {
        let mut pool = pool_for_tests();
        let identity = SEALS.of(&pool).unwrap();
        pool.metadata.annotations = Some([(IDENTITY.to_owned(), identity.sealed)].into());
        pool.metadata.uid = Some("uid-after".into());
        pool
    }

    fn identity(pool: &SpotPool) -> Result<String, Unproven> {
        SEALS.of(pool).map(|identity| identity.value)
    }

    #[test]
    fn a_restored_pool_has_the_identity_of_the_first_one() {
        let before = pool_for_tests().metadata.uid.unwrap();
        assert_eq!(identity(&restored()), Ok(before.clone()));
        let meta = restored().metadata;
        let by_metadata = SEALS.of_metadata::<SpotPool>(&meta).unwrap();
        assert_eq!(by_metadata.value, before);
    }

    #[test]
    fn a_pool_of_an_older_provider_has_its_uid() {
        let pool = pool_for_tests();
        assert_eq!(identity(&pool), Ok(pool.metadata.uid.unwrap()));
    }

    #[test]
    fn a_copied_annotation_gives_no_other_pool_the_instances() {
        type Change = fn(&mut SpotPool);
        let copies: [Change; 3] = [
            |pool| pool.metadata.name = Some("clara".into()),
            |pool| pool.metadata.namespace = Some("team-speech".into()),
            |pool| {
                let annotations = pool.metadata.annotations.as_mut().unwrap();
                let sealed = annotations.get_mut(IDENTITY).unwrap();
                *sealed = format!("another-uid.{}", sealed.split_once('.').unwrap().1);
            },
        ];
        for copy in copies {
            let mut pool = restored();
            copy(&mut pool);
            let message = identity(&pool).unwrap_err().to_string();
            for part in [IDENTITY, "SpotPool", "remove the annotation", "Secret"] {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
    }

    #[test]
    fn a_seal_of_a_pool_is_none_of_a_lease() {
        let pool = restored();
        let of_lease = SEALS.of_metadata::<SpotLease>(&pool.metadata);
        assert!(of_lease.is_err(), "{of_lease:?}");
    }

    #[test]
    fn a_lost_key_takes_no_pool_from_the_object_that_made_it() {
        let mut pool = restored();
        pool.metadata.uid = pool_for_tests().metadata.uid;
        let other = Seals::new([8; KEY_BYTES]);
        let identity = other.of(&pool).unwrap();
        assert_eq!(Some(identity.value), pool.metadata.uid);
        assert_ne!(Some(identity.sealed.as_str()), annotated(&pool.metadata));
        assert!(other.of(&restored()).is_err(), "only the seal told whose");
    }

    #[test]
    fn an_annotation_that_is_removed_changes_nothing_after_the_first_status() {
        let mut pool = restored();
        let sealed = SEALS.of(&pool).unwrap().sealed;
        pool.metadata.annotations = None;
        let status = pool.status.get_or_insert_default();
        status.at_provider.pool_identity = Some(sealed);
        assert_eq!(identity(&pool), Ok(pool_for_tests().metadata.uid.unwrap()));
    }

    #[test]
    fn the_key_is_in_no_log() {
        assert_eq!(format!("{:?}", *SEALS), "Seals");
    }
}
