//! The control plane's identity, which distinguishes its resources from all others in an account, and
//! the key that seals the identities of its pools and leases.

use std::collections::BTreeSet;
use std::fmt::Debug;

use aws_lc_rs::rand;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::seals::{KEY_BYTES, SECRET, Seals};

/// The `ConfigMap` with the identity. It outlives the provider's pod, revision and package. The
/// usual identity, the UID of kube-system, cannot be read, because Crossplane lets a provider read
/// no Namespace.
pub const NAME: &str = "provider-gpu-spot-identity";
/// The key of the identity. Its first value is the `ConfigMap`'s UID. Unlike the UID, a backup
/// restores it.
const IDENTITY: &str = "identity";
/// The key of the bytes with which identities are sealed, in the Secret.
const KEY: &str = "key";
/// The prefix of the keys of deleted pools whose instances stay.
const KEPT: &str = "kept.";

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The API server refused.
    #[error("ConfigMap {namespace}/{NAME}: {source}")]
    Api {
        /// The provider's namespace.
        namespace: String,
        /// The error of the API server.
        #[source]
        source: kube::Error,
    },
    /// The API server refused the Secret with the key.
    #[error("Secret {namespace}/{SECRET}: {source}")]
    Key {
        /// The provider's namespace.
        namespace: String,
        /// The error of the API server.
        #[source]
        source: kube::Error,
    },
    /// The Secret with the key has none.
    #[error(
        "Secret {0}/{SECRET}: data.{KEY} must have {KEY_BYTES} bytes: restore it from a backup"
    )]
    NoKey(String),
    /// The operating system gives no random bytes.
    #[error("cannot make a key: the system gives no random bytes")]
    NoRandomness,
    /// The API server answered without a UID.
    #[error("ConfigMap {0}/{NAME} has no UID")]
    NoUid(String),
}

/// The values by which a control plane recognises its own.
pub struct ControlPlane {
    /// The value of the tag on everything in AWS.
    pub identity: String,
    /// Proves the identities of pools and leases.
    pub seals: Seals,
}

impl ControlPlane {
    /// Reads the identity and the key. The first provider of a control plane creates both.
    pub async fn read(client: &Client, namespace: &str) -> Result<Self, IdentityError> {
        Ok(Self {
            identity: identity(client, namespace).await?,
            seals: seals(client, namespace).await?,
        })
    }
}

async fn identity(client: &Client, namespace: &str) -> Result<String, IdentityError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let refused = |source| IdentityError::Api {
        namespace: namespace.to_owned(),
        source,
    };
    let map = read_or_create(&api, NAME, first_map());
    let map = map.await.map_err(refused)?;
    if let Some(identity) = map.data.as_ref().and_then(|data| data.get(IDENTITY)) {
        return Ok(identity.clone());
    }
    let uid = map.metadata.uid;
    let uid = uid.ok_or_else(|| IdentityError::NoUid(namespace.to_owned()))?;
    // Two providers that start at the same time write the same value.
    let patch = Patch::Merge(json!({"data": {IDENTITY: uid}}));
    let written = api.patch(NAME, &PatchParams::default(), &patch).await;
    written.map_err(refused)?;
    Ok(uid)
}

async fn seals(client: &Client, namespace: &str) -> Result<Seals, IdentityError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let refused = |source| IdentityError::Key {
        namespace: namespace.to_owned(),
        source,
    };
    let secret = read_or_create(&api, SECRET, first_secret()?);
    let secret = secret.await.map_err(refused)?;
    let key = secret.data.and_then(|mut data| data.remove(KEY));
    let key = key.and_then(|ByteString(key)| key.try_into().ok());
    key.map(Seals::new)
        .ok_or_else(|| IdentityError::NoKey(namespace.to_owned()))
}

/// Reads an object, or creates it. If another provider creates it meanwhile, that object holds.
async fn read_or_create<K>(api: &Api<K>, name: &str, first: K) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    if let Some(existing) = api.get_opt(name).await? {
        return Ok(existing);
    }
    match api.create(&PostParams::default(), &first).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(name).await,
        created => created,
    }
}

/// Records that the instances of a deleted pool stay. `pool` is its identity. `name` is its namespace
/// and name, for people.
pub async fn keep(
    client: &Client,
    namespace: &str,
    pool: &str,
    name: &str,
) -> Result<(), kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let patch = Patch::Merge(json!({"data": {format!("{KEPT}{pool}"): name}}));
    api.patch(NAME, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The identities of the deleted pools whose instances stay.
pub async fn kept(client: &Client, namespace: &str) -> Result<BTreeSet<String>, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let data = api.get(NAME).await?.data.unwrap_or_default();
    let uids = data.keys().filter_map(|key| key.strip_prefix(KEPT));
    Ok(uids.map(str::to_owned).collect())
}

/// The `ConfigMap` as the subject of events.
pub fn object(namespace: &str, uid: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.into()),
            namespace: Some(namespace.into()),
            uid: Some(uid.into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn first_map() -> ConfigMap {
    let purpose = "identity is the value of the tag gpu.platform.acme.io:cluster on everything \
                   that provider-gpu-spot creates in AWS. Without it the provider no longer \
                   recognises what it created. kept. and a UID stand for a deleted SpotPool whose \
                   instances stay, because its managementPolicies had no Delete.";
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([("purpose".to_owned(), purpose.to_owned())].into()),
        ..ConfigMap::default()
    }
}

fn first_secret() -> Result<Secret, IdentityError> {
    let mut key = vec![0; KEY_BYTES];
    rand::fill(&mut key).map_err(|_| IdentityError::NoRandomness)?;
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(SECRET.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([(KEY.to_owned(), ByteString(key))].into()),
        ..Secret::default()
    })
}
