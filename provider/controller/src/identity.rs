//! The control plane's identity, which distinguishes its resources from all others in an account.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

/// The `ConfigMap` with the identity. It outlives the provider's pod, revision and package. The
/// usual identity, the UID of kube-system, cannot be read, because Crossplane lets a provider read
/// no Namespace.
pub const NAME: &str = "provider-gpu-spot-identity";
/// The key of the identity. Its first value is the `ConfigMap`'s UID. Unlike the UID, a backup
/// restores it.
const IDENTITY: &str = "identity";
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
    /// The API server answered without a UID.
    #[error("ConfigMap {0}/{NAME} has no UID")]
    NoUid(String),
}

/// Reads the identity. The first provider of a control plane creates it.
pub async fn of_control_plane(client: &Client, namespace: &str) -> Result<String, IdentityError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let refused = |source| IdentityError::Api {
        namespace: namespace.to_owned(),
        source,
    };
    let existing = api.get_opt(NAME).await.map_err(refused)?;
    let map = match existing {
        Some(map) => map,
        None => match api.create(&PostParams::default(), &identity()).await {
            Ok(map) => map,
            // Another provider created it meanwhile: its UID is the identity.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                api.get(NAME).await.map_err(refused)?
            }
            Err(error) => return Err(refused(error)),
        },
    };
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

/// Records that the instances of a deleted pool stay. `name` is the pool's namespace and name, for
/// people.
pub async fn keep(
    client: &Client,
    namespace: &str,
    pool_uid: &str,
    name: &str,
) -> Result<(), kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let patch = Patch::Merge(json!({"data": {format!("{KEPT}{pool_uid}"): name}}));
    api.patch(NAME, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The UIDs of the deleted pools whose instances stay.
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

fn identity() -> ConfigMap {
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
