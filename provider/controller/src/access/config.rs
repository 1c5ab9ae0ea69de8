//! Reads both kinds of configuration into one type.

use std::collections::BTreeMap;

use api::managed::{ProviderConfigKind, ProviderConfigReference};
use api::provider_config::{
    AssumeRole, ClusterProviderConfig, ClusterProviderConfigSpec, CredentialSource, Credentials,
    Endpoint, ProviderConfig, ProviderConfigSpec, SecretKeySelector, TokenSource, WebIdentity,
};
use kube::Client;
use kube::api::Api;

use super::address::Address;
use super::config_name::ConfigName;
use super::error::ConnectError;
use super::rights::Rights;

const SECRET: &str = "spec.credentials.secretRef";
const TOKEN: &str = "spec.credentials.webIdentity.tokenConfig.secretRef";
const SOURCE: &str = "spec.credentials.source";
const TOKEN_CONFIG: &str = "spec.credentials.webIdentity.tokenConfig";

/// A configuration of either kind.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) name: ConfigName,
    /// Its namespace, if it has one.
    pub(super) namespace: Option<String>,
    pub(super) credentials: Credentials,
    pub(super) roles: Vec<AssumeRole>,
    pub(super) endpoint: Option<Endpoint>,
    /// The queues that the provider reads. A namespaced configuration has none.
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
            Ok(Config::of_cluster(name, found.ok_or_else(missing)?.spec))
        }
        ProviderConfigKind::ProviderConfig => {
            let api: Api<ProviderConfig> = Api::namespaced(client.clone(), namespace);
            let found = api.get_opt(&reference.name).await.map_err(refused)?;
            let spec = found.ok_or_else(missing)?.spec;
            Ok(Config::of_namespace(name, namespace.to_owned(), spec))
        }
    }
}

impl Config {
    pub(super) fn of_cluster(name: ConfigName, spec: ClusterProviderConfigSpec) -> Self {
        Self {
            name,
            namespace: None,
            credentials: spec.credentials,
            roles: spec.assume_role_chain,
            endpoint: spec.endpoint,
            queues: spec.event_queues,
        }
    }

    /// The API server refuses queues in a namespace. An object that is older than this rule may
    /// still have them, and they are left out: the provider deletes what it reads, so the namespace
    /// could take the messages of everybody else.
    pub(super) fn of_namespace(
        name: ConfigName,
        namespace: String,
        spec: ProviderConfigSpec,
    ) -> Self {
        Self {
            name,
            namespace: Some(namespace),
            credentials: spec.credentials,
            roles: spec.assume_role_chain,
            endpoint: spec.endpoint,
            queues: BTreeMap::new(),
        }
    }

    /// Refuses fields that a configuration must not have, whatever its Secret holds.
    pub(super) fn check(&self, rights: &Rights) -> Result<(), ConnectError> {
        if self.credentials.source == CredentialSource::None && self.endpoint.is_none() {
            return Err(ConnectError::Unsigned(self.name.clone()));
        }
        self.check_rights(rights)
    }

    /// Refuses what a namespaced configuration may not do.
    pub(super) fn check_rights(&self, rights: &Rights) -> Result<(), ConnectError> {
        if self.namespace.is_none() {
            return Ok(());
        }
        if let Some(field) = self.identity_of_pod()
            && !rights.identity
        {
            return Err(ConnectError::IdentityOfProvider {
                config: self.name.clone(),
                field,
            });
        }
        let Some(endpoint) = &self.endpoint else {
            return Ok(());
        };
        if self.sends_token_of_pod() {
            return Err(ConnectError::TokenLeavesAws(self.name.clone()));
        }
        let address = endpoint.url.static_.parse::<Address>();
        if address.is_ok_and(|address| rights.endpoints.contains(&address)) {
            return Ok(());
        }
        Err(ConnectError::ForeignEndpoint(self.name.clone()))
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

    /// The field by which the configuration asks for the identity of the provider's pod.
    fn identity_of_pod(&self) -> Option<&'static str> {
        match self.credentials.source {
            CredentialSource::Irsa | CredentialSource::PodIdentity => Some(SOURCE),
            CredentialSource::WebIdentity => {
                let wanted = self.credentials.web_identity.as_ref();
                let place = wanted.and_then(|wanted| wanted.token_config.as_ref());
                let is_of_pod = place.is_none_or(|place| place.source == TokenSource::Filesystem);
                is_of_pod.then_some(TOKEN_CONFIG)
            }
            CredentialSource::None | CredentialSource::Secret => None,
        }
    }

    /// Whether the pod's token is sent to the endpoint. A token is a proof by itself: unlike with a
    /// signature, every receiver can use it. The agent of Pod Identity has an address of its own.
    fn sends_token_of_pod(&self) -> bool {
        let is_agents = self.credentials.source == CredentialSource::PodIdentity;
        self.identity_of_pod().is_some() && !is_agents
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
