//! One key of one Secret.

use api::provider_config::SecretKeySelector;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;

use super::config_name::ConfigName;
use super::error::ConnectError;

/// The content of a Secret's key, and the reference to it. It cannot be printed.
pub(super) struct Kept {
    pub(super) selector: SecretKeySelector,
    pub(super) text: String,
}

pub(super) async fn read(
    client: &Client,
    config: &ConfigName,
    selector: &SecretKeySelector,
) -> Result<Kept, ConnectError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &selector.namespace);
    let found = api.get_opt(&selector.name).await;
    let secret = found.map_err(|source| ConnectError::Api {
        what: format!("{config}: Secret {}/{}", selector.namespace, selector.name),
        source,
    })?;
    let bytes = secret
        .and_then(|secret| secret.data)
        .and_then(|mut data| data.remove(&selector.key))
        .ok_or_else(|| ConnectError::NoSecret {
            config: config.clone(),
            secret: format!("{}/{}", selector.namespace, selector.name),
            key: selector.key.clone(),
        })?;
    Ok(Kept {
        selector: selector.clone(),
        text: String::from_utf8_lossy(&bytes.0).into_owned(),
    })
}
