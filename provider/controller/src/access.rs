//! Resolves a `providerConfigRef` to credentials and an endpoint.

mod address;
mod config;
mod config_name;
mod error;
mod known;
mod origin;
mod rights;
mod secret;

use std::collections::BTreeMap;

use api::managed::{ProviderConfigKind, ProviderConfigReference};
use api::provider_config::{
    AssumeRole, CredentialSource, ProviderConfig, TokenSource, WebIdentity,
};
use kube::{Client, ResourceExt as _};
use provider_aws::{Access, AccessError, Credentials, Role, Token, parse_profile};
use sha2::{Digest, Sha256};

pub use address::Address;
pub use error::ConnectError;
pub use known::Known;
pub use origin::Origin;
pub use rights::Rights;

use config::Config;
use config_name::ConfigName;
use secret::Kept;

/// A digest that distinguishes one access from another.
pub type Fingerprint = [u8; 32];

/// Access to AWS, and a fingerprint that changes when the access does.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The credentials, roles and endpoint.
    pub access: Access,
    /// Queues with EC2's events, by region.
    pub queues: BTreeMap<String, String>,
    /// Equal for equal access. No secret can be read back from it.
    pub fingerprint: Fingerprint,
    /// The objects that the access comes from, for messages to the person who has to correct it.
    pub origin: Origin,
}

/// Reads the configuration that a pool of `namespace` refers to, and the Secret that the
/// configuration names.
pub async fn resolve(
    client: &Client,
    namespace: &str,
    reference: &ProviderConfigReference,
    rights: &Rights,
) -> Result<Resolved, ConnectError> {
    let config = config::read(client, namespace, reference).await?;
    config.check(rights)?;
    let kept = match config.secret()? {
        Some(selector) => Some(secret::read(client, &config.name, selector).await?),
        None => None,
    };
    let credentials = credentials(&config, kept.as_ref(), |key| std::env::var(key).ok())?;
    let mut fingerprint = Sha256::new();
    fingerprint.update(config.describe());
    fingerprint.update(kept.as_ref().map_or("", |kept| &kept.text));
    Ok(Resolved {
        origin: Origin::of(&config),
        access: Access {
            credentials,
            roles: config.roles.iter().map(role).collect(),
            endpoint: config.endpoint.map(|e| e.url.static_),
        },
        queues: config.queues,
        fingerprint: fingerprint.finalize().into(),
    })
}

/// What the provider does not do for a namespaced configuration, with the next step: the refusal
/// that its pools report, and queues, without which its pools work.
pub fn not_permitted(object: &ProviderConfig, rights: &Rights) -> Option<String> {
    let name = ConfigName::from(&ProviderConfigReference {
        kind: ProviderConfigKind::ProviderConfig,
        name: object.name_any(),
    });
    let namespace = object.namespace().unwrap_or_default();
    let config = Config::of_namespace(name.clone(), namespace, object.spec.clone());
    let refusal = config
        .check_rights(rights)
        .err()
        .map(|error| error.to_string());
    let has_queues = !object.spec.event_queues.is_empty();
    let ignored = has_queues.then(|| {
        format!(
            "{name}: spec.eventQueues: is ignored, because a message that the provider has read is \
             gone for every other pool; name the queue in a ClusterProviderConfig"
        )
    });
    let said: Vec<String> = refusal.into_iter().chain(ignored).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// The credentials from the configuration, its Secret and the pod's environment.
fn credentials(
    config: &Config,
    kept: Option<&Kept>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Credentials, ConnectError> {
    let source = config.credentials.source;
    let no_identity = |error: AccessError| ConnectError::Identity {
        config: config.name.clone(),
        source_name: config::source_name(source),
        source: error,
    };
    match source {
        CredentialSource::None => Ok(Credentials::Unsigned),
        CredentialSource::Secret => {
            let kept = kept.ok_or_else(|| config.lacks("spec.credentials.secretRef"))?;
            parse_profile(&kept.text)
                .map(Credentials::Static)
                .map_err(|source| ConnectError::Profile {
                    config: config.name.clone(),
                    secret: format!("{}/{}", kept.selector.namespace, kept.selector.name),
                    key: kept.selector.key.clone(),
                    source,
                })
        }
        CredentialSource::Irsa => Credentials::irsa(environment).map_err(no_identity),
        CredentialSource::PodIdentity => {
            Credentials::pod_identity(environment).map_err(no_identity)
        }
        CredentialSource::WebIdentity => {
            let wanted = config.web_identity()?;
            let token = match token(config, wanted, kept)? {
                Some(token) => token,
                None => Token::of_pod(environment).map_err(no_identity)?,
            };
            Ok(Credentials::WebIdentity(provider_aws::WebIdentity {
                token,
                role_arn: wanted.role_arn.clone(),
                session_name: wanted.role_session_name.clone(),
            }))
        }
    }
}

/// The web identity token from the place that the configuration names.
fn token(
    config: &Config,
    wanted: &WebIdentity,
    kept: Option<&Kept>,
) -> Result<Option<Token>, ConnectError> {
    let Some(place) = &wanted.token_config else {
        return Ok(None);
    };
    Ok(Some(match (place.source, kept, &place.fs) {
        (TokenSource::Secret, Some(kept), _) => Token::Given(kept.text.clone()),
        (TokenSource::Filesystem, _, Some(file)) => Token::File(file.path.clone().into()),
        (TokenSource::Secret, None, _) => {
            return Err(config.lacks("spec.credentials.webIdentity.tokenConfig.secretRef"));
        }
        (TokenSource::Filesystem, _, None) => {
            return Err(config.lacks("spec.credentials.webIdentity.tokenConfig.fs"));
        }
    }))
}

fn role(role: &AssumeRole) -> Role {
    let tags = role.tags.iter();
    Role {
        arn: role.role_arn.clone(),
        external_id: role.external_id.clone(),
        tags: tags.map(|t| (t.key.clone(), t.value.clone())).collect(),
        transitive_tag_keys: role.transitive_tag_keys.clone(),
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
