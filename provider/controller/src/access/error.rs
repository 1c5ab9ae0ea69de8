//! The reasons why a pool has no access to AWS.

use provider_aws::{AccessError, ProfileError};

use super::config_name::ConfigName;

/// Why a pool has no access to AWS. Every variant names the object to correct.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The configuration does not exist.
    #[error("{0} does not exist; create it, or name another in spec.providerConfigRef")]
    NoConfig(ConfigName),
    /// The configuration lacks a field that its source needs.
    #[error("{config}: {field} is required when source is {source_name}")]
    Lacks {
        /// The configuration.
        config: ConfigName,
        /// The field's path.
        field: &'static str,
        /// The source.
        source_name: &'static str,
    },
    /// A namespaced configuration reaches into another namespace.
    #[error("{config}: {field}.namespace: must be {namespace:?}, the ProviderConfig's own")]
    ForeignSecret {
        /// The configuration.
        config: ConfigName,
        /// The reference's path.
        field: &'static str,
        /// The configuration's namespace.
        namespace: String,
    },
    /// The author of a namespaced configuration would act with the rights of the provider.
    #[error(
        "{config}: {field}: uses the identity of the provider's pod, which a ProviderConfig may do \
         only with the provider's flag --namespaced-identity; use a ClusterProviderConfig, or \
         credentials in a Secret of the namespace"
    )]
    IdentityOfProvider {
        /// The configuration.
        config: ConfigName,
        /// The field's path.
        field: &'static str,
    },
    /// The author of a namespaced configuration could have requests sent to any server that the
    /// provider reaches.
    #[error(
        "{0}: spec.endpoint.url.static: a ProviderConfig may only name a scheme, host and port of \
         the provider's flag --allowed-endpoints; let the platform team list them, use a \
         ClusterProviderConfig, or leave out spec.endpoint to call AWS"
    )]
    ForeignEndpoint(ConfigName),
    /// The author of a namespaced configuration could have a token of the provider's pod sent to an
    /// endpoint of their own.
    #[error(
        "{0}: spec.endpoint: must not be set where the token is one of the provider's pod, which \
         would be sent there; use a ClusterProviderConfig, or a token in a Secret"
    )]
    TokenLeavesAws(ConfigName),
    /// Requests would not be signed, and there is no endpoint that accepts that.
    #[error("{0}: spec.endpoint is required when source is None: AWS takes signed requests only")]
    Unsigned(ConfigName),
    /// The Secret or its key does not exist.
    #[error("{config}: Secret {secret} has no key {key:?}; create it")]
    NoSecret {
        /// The configuration that names it.
        config: ConfigName,
        /// Its namespace and name.
        secret: String,
        /// The key.
        key: String,
    },
    /// The Secret's content is not a profile.
    #[error("{config}: Secret {secret}, key {key:?}: {source}")]
    Profile {
        /// The configuration that names it.
        config: ConfigName,
        /// Its namespace and name.
        secret: String,
        /// The key.
        key: String,
        /// The error in the profile.
        #[source]
        source: ProfileError,
    },
    /// The pod has no identity of its own.
    #[error("{config}: source is {source_name}, and {source}")]
    Identity {
        /// The configuration.
        config: ConfigName,
        /// The source.
        source_name: &'static str,
        /// The variable that the pod lacks.
        #[source]
        source: AccessError,
    },
    /// The API server refused.
    #[error("{what}: {source}")]
    Api {
        /// The object that was read.
        what: String,
        /// The error of the API server.
        #[source]
        source: kube::Error,
    },
}
