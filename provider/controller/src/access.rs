//! From a `providerConfigRef` to credentials and an endpoint.

use std::collections::BTreeMap;

use api::managed::{ProviderConfigKind, ProviderConfigReference};
use api::provider_config::{
    ClusterProviderConfig, CredentialSource, Credentials, Endpoint, ProviderConfig,
    SecretKeySelector,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use provider_aws::{Access, AccessError, ProfileError, parse_profile};
use sha2::{Digest, Sha256};

/// Why a pool has no access to AWS. Every variant names the object to mend.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The configuration does not exist.
    #[error("{kind} {name:?} does not exist; create it, or name another in spec.providerConfigRef")]
    NoConfig {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The configuration names no Secret.
    #[error("{kind} {name:?}: spec.credentials.secretRef is required when source is Secret")]
    NoSecretRef {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A namespaced configuration reaches into another namespace.
    #[error(
        "ProviderConfig {name:?}: spec.credentials.secretRef.namespace: must be {namespace:?}, the \
         ProviderConfig's own"
    )]
    ForeignSecret {
        /// The configuration's name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// The Secret or its key does not exist.
    #[error("Secret {namespace}/{name} has no key {key:?}")]
    NoSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// The Secret's content is no profile.
    #[error("Secret {namespace}/{name}, key {key:?}: {source}")]
    Profile {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
        /// Why.
        #[source]
        source: ProfileError,
    },
    /// The pod has no identity of its own.
    #[error(transparent)]
    Identity(#[from] AccessError),
    /// The API server refused.
    #[error("{what}: {source}")]
    Api {
        /// What was read.
        what: String,
        /// Why not.
        #[source]
        source: kube::Error,
    },
}

/// Access to AWS, and a fingerprint that changes when it does.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// How AWS is reached.
    pub access: Access,
    /// Queues with EC2's events, by region.
    pub queues: BTreeMap<String, String>,
    /// Equal for equal access. Holds no secret that could be read back.
    pub fingerprint: [u8; 32],
}

struct Config {
    kind: &'static str,
    name: String,
    namespace: Option<String>,
    credentials: Credentials,
    endpoint: Option<Endpoint>,
    queues: BTreeMap<String, String>,
}

/// Reads the configuration that a pool of `namespace` refers to.
pub async fn resolve(
    client: &Client,
    namespace: &str,
    reference: &ProviderConfigReference,
) -> Result<Resolved, ConnectError> {
    let config = read_config(client, namespace, reference).await?;
    let mut fingerprint = Sha256::new();
    fingerprint.update(format!("{:?} {:?}", config.endpoint, config.queues));
    let credentials = match config.credentials.source {
        CredentialSource::Secret => {
            let profile = read_secret(client, &config).await?;
            fingerprint.update(&profile.text);
            profile.parse()?
        }
        CredentialSource::Irsa => {
            fingerprint.update("IRSA");
            provider_aws::Credentials::irsa(|key| std::env::var(key).ok())?
        }
    };
    Ok(Resolved {
        access: Access {
            credentials,
            endpoint: config.endpoint.map(|e| e.url.static_),
        },
        queues: config.queues,
        fingerprint: fingerprint.finalize().into(),
    })
}

async fn read_config(
    client: &Client,
    namespace: &str,
    reference: &ProviderConfigReference,
) -> Result<Config, ConnectError> {
    let name = reference.name.clone();
    let kind = reference.kind.as_str();
    let missing = || ConnectError::NoConfig {
        kind,
        name: reference.name.clone(),
    };
    let refused = |source| ConnectError::Api {
        what: format!("{kind} {:?}", reference.name),
        source,
    };
    let (credentials, endpoint, queues, namespace) = match reference.kind {
        ProviderConfigKind::ClusterProviderConfig => {
            let api: Api<ClusterProviderConfig> = Api::all(client.clone());
            let found = api.get_opt(&name).await.map_err(refused)?;
            let spec = found.ok_or_else(missing)?.spec;
            (spec.credentials, spec.endpoint, spec.event_queues, None)
        }
        ProviderConfigKind::ProviderConfig => {
            let api: Api<ProviderConfig> = Api::namespaced(client.clone(), namespace);
            let found = api.get_opt(&name).await.map_err(refused)?;
            let spec = found.ok_or_else(missing)?.spec;
            let own = Some(namespace.to_owned());
            (spec.credentials, spec.endpoint, spec.event_queues, own)
        }
    };
    Ok(Config {
        kind,
        name,
        namespace,
        credentials,
        endpoint,
        queues,
    })
}

struct Profile {
    selector: SecretKeySelector,
    text: String,
}

impl Profile {
    fn parse(self) -> Result<provider_aws::Credentials, ConnectError> {
        parse_profile(&self.text)
            .map(provider_aws::Credentials::Static)
            .map_err(|source| ConnectError::Profile {
                namespace: self.selector.namespace,
                name: self.selector.name,
                key: self.selector.key,
                source,
            })
    }
}

async fn read_secret(client: &Client, config: &Config) -> Result<Profile, ConnectError> {
    let selector =
        config
            .credentials
            .secret_ref
            .clone()
            .ok_or_else(|| ConnectError::NoSecretRef {
                kind: config.kind,
                name: config.name.clone(),
            })?;
    if let Some(own) = config
        .namespace
        .as_ref()
        .filter(|n| **n != selector.namespace)
    {
        return Err(ConnectError::ForeignSecret {
            name: config.name.clone(),
            namespace: own.clone(),
        });
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), &selector.namespace);
    let found = api.get_opt(&selector.name).await;
    let secret = found.map_err(|source| ConnectError::Api {
        what: format!("Secret {}/{}", selector.namespace, selector.name),
        source,
    })?;
    let bytes = secret
        .and_then(|secret| secret.data)
        .and_then(|mut data| data.remove(&selector.key))
        .ok_or_else(|| ConnectError::NoSecret {
            namespace: selector.namespace.clone(),
            name: selector.name.clone(),
            key: selector.key.clone(),
        })?;
    let text = String::from_utf8_lossy(&bytes.0).into_owned();
    Ok(Profile { selector, text })
}
