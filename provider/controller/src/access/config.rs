//! Reads both kinds of configuration into one type.

use std::collections::BTreeMap;

use api::managed::{ProviderConfigKind, ProviderConfigReference};
use api::provider_config::{
    AssumeRole, ClusterProviderConfig, CredentialSource, Credentials, Endpoint, ProviderConfig,
    SecretKeySelector, TokenSource, WebIdentity,
};
use kube::Client;
use kube::api::Api;

use super::config_name::ConfigName;
use super::error::ConnectError;

const SECRET: &str = "spec.credentials.secretRef";
const TOKEN: &str = "spec.credentials.webIdentity.tokenConfig.secretRef";

/// A configuration of either kind.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) name: ConfigName,
    /// Its namespace, if it has one.
    pub(super) namespace: Option<String>,
    pub(super) credentials: Credentials,
    pub(super) roles: Vec<AssumeRole>,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) queues: BTreeMap<String, String>,
}

/// Reads the configuration that a resource of `namespace` refers to.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    reference: &ProviderConfigReference,
) -> Result<Config, ConnectError> {
    let name = ConfigName::from(reference);
    let missing = || ConnectError::NoConfig(reference.into());
    let refused = |source| ConnectError::Api {
        what: ConfigName::from(reference).to_string(),
        source,
    };
    match reference.kind {
        ProviderConfigKind::ClusterProviderConfig => {
            let api: Api<ClusterProviderConfig> = Api::all(client.clone());
            let found = api.get_opt(&reference.name).await.map_err(refused)?;
            let spec = found.ok_or_else(missing)?.spec;
            Ok(Config {
                name,
                namespace: None,
                credentials: spec.credentials,
                roles: spec.assume_role_chain,
                endpoint: spec.endpoint,
                queues: spec.event_queues,
            })
        }
        ProviderConfigKind::ProviderConfig => {
            let api: Api<ProviderConfig> = Api::namespaced(client.clone(), namespace);
            let found = api.get_opt(&reference.name).await.map_err(refused)?;
            let spec = found.ok_or_else(missing)?.spec;
            Ok(Config {
                name,
                namespace: Some(namespace.to_owned()),
                credentials: spec.credentials,
                roles: spec.assume_role_chain,
                endpoint: spec.endpoint,
                queues: spec.event_queues,
            })
        }
    }
}

impl Config {
    /// Refuses fields that a configuration must not have, whatever its Secret holds.
    pub(super) fn check(&self) -> Result<(), ConnectError> {
        let has_endpoint = self.endpoint.is_some();
        if self.credentials.source == CredentialSource::None && !has_endpoint {
            return Err(ConnectError::Unsigned(self.name.clone()));
        }
        if self.namespace.is_some() && has_endpoint && self.sends_token_of_pod() {
            return Err(ConnectError::TokenLeavesAws(self.name.clone()));
        }
        Ok(())
    }

    /// The Secret that has to be read, if there is one.
    pub(super) fn secret(&self) -> Result<Option<&SecretKeySelector>, ConnectError> {
        let (field, selector) = match self.credentials.source {
            CredentialSource::Secret => (SECRET, self.credentials.secret_ref.as_ref()),
            CredentialSource::WebIdentity => {
                let place = self.web_identity()?.token_config.as_ref();
                match place.filter(|place| place.source == TokenSource::Secret) {
                    Some(place) => (TOKEN, place.secret_ref.as_ref()),
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let selector = selector.ok_or_else(|| self.lacks(field))?;
        match &self.namespace {
            Some(own) if *own != selector.namespace => Err(ConnectError::ForeignSecret {
                config: self.name.clone(),
                field,
                namespace: own.clone(),
            }),
            _ => Ok(Some(selector)),
        }
    }

    pub(super) fn web_identity(&self) -> Result<&WebIdentity, ConnectError> {
        let wanted = self.credentials.web_identity.as_ref();
        wanted.ok_or_else(|| self.lacks("spec.credentials.webIdentity"))
    }

    pub(super) fn lacks(&self, field: &'static str) -> ConnectError {
        ConnectError::Lacks {
            config: self.name.clone(),
            field,
            source_name: source_name(self.credentials.source),
        }
    }

    /// All fields that make a difference to AWS. The Secret's content is not included.
    pub(super) fn describe(&self) -> String {
        let Self {
            name: _,
            namespace: _,
            credentials,
            roles,
            endpoint,
            queues,
        } = self;
        format!("{credentials:?} {roles:?} {endpoint:?} {queues:?} ")
    }

    /// Whether the pod's token is sent. A token is a proof by itself: unlike with a signature,
    /// every receiver can use it.
    fn sends_token_of_pod(&self) -> bool {
        match self.credentials.source {
            CredentialSource::Irsa => true,
            CredentialSource::WebIdentity => {
                let wanted = self.credentials.web_identity.as_ref();
                let place = wanted.and_then(|wanted| wanted.token_config.as_ref());
                place.is_none_or(|place| place.source == TokenSource::Filesystem)
            }
            _ => false,
        }
    }
}

/// The source's name in manifests.
pub(super) fn source_name(source: CredentialSource) -> &'static str {
    match source {
        CredentialSource::None => "None",
        CredentialSource::Secret => "Secret",
        CredentialSource::Irsa => "IRSA",
        CredentialSource::WebIdentity => "WebIdentity",
        CredentialSource::PodIdentity => "PodIdentity",
    }
}
