//! The control plane's identity, which distinguishes its resources from all others in an account.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, PostParams};

/// The `ConfigMap` whose UID is the identity. It outlives the provider's pod, revision and package.
/// The usual identity, the UID of kube-system, cannot be read, because Crossplane lets a provider
/// read no Namespace.
pub const NAME: &str = "provider-gpu-spot-identity";

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
    map.metadata
        .uid
        .ok_or_else(|| IdentityError::NoUid(namespace.to_owned()))
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
    let purpose = "The UID of this ConfigMap is the value of the tag \
                   gpu.platform.acme.io:cluster on everything that provider-gpu-spot creates in \
                   AWS. Without it the provider no longer recognises what it created.";
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([("purpose".to_owned(), purpose.to_owned())].into()),
        ..ConfigMap::default()
    }
}
