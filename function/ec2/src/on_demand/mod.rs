//! Workspaces on demand: managed resources of upbound's provider-aws-ec2.
//!
//! Facts of that provider (v2.5) that the rendering follows:
//! - A field that EC2 cannot change makes every further update fail, so such a
//!   field is part of the resource's key ([`crate::resource_names`]) and otherwise kept.
//! - A change of user data or type stops and starts the instance in place. Here
//!   it makes another instance, or none at all.
//! - Terraform removes EC2's rule for everything that goes out from a new group.
//! - A reference is resolved once. An attachment names ids, since the instance
//!   of one object may become another one.

pub mod failure;
pub mod home;
pub mod instance;
pub mod instance_state;
pub mod network;
pub mod usages;

use api::managed::ProviderConfigReference;
use serde_json::{Map, Value, json};

/// Upbound's namespaced EC2 kinds.
pub const API_VERSION: &str = "ec2.aws.m.upbound.io/v1beta1";

/// A managed resource of that API.
fn resource(
    kind: &str,
    namespace: &str,
    provider_config: &ProviderConfigReference,
    for_provider: &Map<String, Value>,
) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"namespace": namespace},
        "spec": {
            "providerConfigRef": provider_config,
            "forProvider": for_provider,
        },
    })
}

/// Fields of a `forProvider`; those without a value are left out.
fn fields<const N: usize>(entries: [(&str, Option<Value>); N]) -> Map<String, Value> {
    entries
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
