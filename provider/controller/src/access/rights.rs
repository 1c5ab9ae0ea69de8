//! What the provider's flags permit to a `ProviderConfig`.
//!
//! Whoever may write objects in a namespace may write its `ProviderConfig`s, and the provider then
//! acts for them with its own identity and from its own place in the network. The platform team
//! writes `ClusterProviderConfig`s and sets these flags, so the flags do not bind those.

use super::address::Address;

/// What the provider's flags permit to a `ProviderConfig`. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Whether it may use the identity of the provider's pod.
    pub identity: bool,
    /// The addresses that it may name as its endpoint.
    pub endpoints: Vec<Address>,
}
