//! Holding: what is observed stays as it is until the function knows more.
//!
//! A resource that is missing from desired state is deleted, and a field that is
//! missing from a desired resource is removed from it. So a resource is held by
//! desiring it whole.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::schema::Violations;

/// The prefix of the labels that this function sets.
const OWN_PREFIX: &str = "platform.acme.io/";

/// What the function does not know.
#[derive(Clone, Debug, Error)]
pub enum Hold {
    /// Crossplane has not fetched the catalogue yet.
    #[error("waiting for Crossplane to fetch EnvironmentConfig {name}")]
    Unresolved {
        /// The `EnvironmentConfig`.
        name: String,
    },
    /// There is no catalogue.
    #[error(
        "EnvironmentConfig {name} does not exist: create it, or name another one in the \
         Composition's input.catalogue.name"
    )]
    Absent {
        /// The `EnvironmentConfig`.
        name: String,
    },
    /// Two `EnvironmentConfigs` say something about the same thing.
    #[error(
        "EnvironmentConfig {second} repeats {path}, which EnvironmentConfig {first} has: remove \
         it from one of them"
    )]
    Ambiguous {
        /// Those that may have it already.
        first: String,
        /// The one that repeats it.
        second: String,
        /// What is repeated, for example `data.images.us-east-1`.
        path: String,
    },
    /// Subnets without their VPC, where a security group has to be made.
    #[error(
        "EnvironmentConfig {name} has data.networks.{region}.subnetIds and neither vpcId nor \
         securityGroupIds: an on-demand workspace needs a group in the subnets' VPC, add one of \
         the two"
    )]
    NetworkIncomplete {
        /// The `EnvironmentConfig`.
        name: String,
        /// The workspace's region.
        region: String,
    },
    /// There is a ceiling, and nothing to hold against it.
    #[error(
        "EnvironmentConfig {name} has no data.prices.hourlyUsd.{region}.{instance_type}, and \
         the Composition's input.ceilings.hourlyUsd needs it: add the on-demand price"
    )]
    PriceMissing {
        /// The `EnvironmentConfig`.
        name: String,
        /// The workspace's region.
        region: String,
        /// The type.
        instance_type: String,
    },
    /// The claim's Namespace, which says whose claims it holds, is not there.
    #[error("waiting for Crossplane to fetch Namespace {name}, whose label says who owns it")]
    NamespaceUnresolved {
        /// The Namespace.
        name: String,
    },
    /// Crossplane has not fetched the flavor yet.
    #[error("waiting for Crossplane to fetch WorkspaceFlavor {name}")]
    FlavorUnresolved {
        /// The `WorkspaceFlavor`.
        name: String,
    },
    /// There is no such flavor.
    #[error(
        "WorkspaceFlavor {name} does not exist: create it, or name another one in \
         spec.parameters.flavor or the Composition's input.cluster.defaultFlavor"
    )]
    FlavorAbsent {
        /// The `WorkspaceFlavor`.
        name: String,
    },
    /// The flavor does not fit its schema.
    #[error("WorkspaceFlavor {name} is not usable: {violations}")]
    FlavorInvalid {
        /// The `WorkspaceFlavor`.
        name: String,
        /// Fields under `spec`.
        violations: Violations,
    },
    /// Crossplane has not fetched the owner yet.
    #[error("waiting for Crossplane to fetch DevUser {name}")]
    DevUserUnresolved {
        /// The `DevUser`.
        name: String,
    },
    /// The catalogue does not fit its schema.
    #[error("EnvironmentConfig {name} is not usable: {violations}")]
    Invalid {
        /// The `EnvironmentConfig`.
        name: String,
        /// Fields under `data`.
        violations: Violations,
    },
    /// The catalogue has other images for the region, but not this one.
    #[error(
        "EnvironmentConfig {name} has no data.images.{region}.{key}: add it, or set the \
         Composition's input.defaults.image to one of {known}"
    )]
    ImageMissing {
        /// The `EnvironmentConfig`.
        name: String,
        /// The workspace's region.
        region: String,
        /// The image's key.
        key: String,
        /// The keys that exist.
        known: String,
    },
    /// The pool boots an image that neither status nor catalogue describe.
    #[error(
        "the SpotPool boots {id}, which status.image does not record and EnvironmentConfig \
         {name} does not list under data.images.{region}: add it there"
    )]
    ImageUnknown {
        /// The `EnvironmentConfig`.
        name: String,
        /// The workspace's region.
        region: String,
        /// The AMI.
        id: String,
    },
}

impl Hold {
    /// The condition's reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } => "CatalogueUnresolved",
            Self::Absent { .. } => "CatalogueMissing",
            Self::Invalid { .. } | Self::Ambiguous { .. } => "CatalogueInvalid",
            Self::NetworkIncomplete { .. } => "NetworkIncomplete",
            Self::PriceMissing { .. } => "PriceMissing",
            Self::NamespaceUnresolved { .. } => "NamespaceUnresolved",
            Self::FlavorUnresolved { .. } => "FlavorUnresolved",
            Self::FlavorAbsent { .. } => "FlavorMissing",
            Self::FlavorInvalid { .. } => "FlavorInvalid",
            Self::DevUserUnresolved { .. } => "DevUserUnresolved",
            Self::ImageMissing { .. } | Self::ImageUnknown { .. } => "ImageMissing",
        }
    }
}

/// An observed resource as it must be desired to stay as it is.
///
/// Of its metadata only the identity and this function's own labels remain: an
/// apply that carries `managedFields` is refused, the other fields are the API
/// server's or Crossplane's, and other labels and annotations are other people's.
pub fn kept(observed: &Value) -> Value {
    let mut kept = Map::new();
    for (key, value) in observed.as_object().into_iter().flatten() {
        match key.as_str() {
            "status" => {}
            "metadata" => {
                kept.insert(key.clone(), identity(value));
            }
            _ => {
                kept.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(kept)
}

fn identity(metadata: &Value) -> Value {
    let entries = ["name", "namespace"].into_iter().filter_map(|key| {
        let value = metadata.get(key)?;
        Some((key.to_owned(), value.clone()))
    });
    let mut identity: Map<String, Value> = entries.collect();
    let labels = metadata.get("labels").and_then(Value::as_object);
    let own: Map<String, Value> = labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(OWN_PREFIX))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !own.is_empty() {
        identity.insert("labels".to_owned(), Value::Object(own));
    }
    Value::Object(identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_held_resource_keeps_every_field_of_its_spec_and_nothing_that_an_apply_refuses() {
        let observed = json!({
            "apiVersion": "gpu.platform.acme.io/v1alpha1",
            "kind": "SpotPool",
            "metadata": {
                "name": "alice-vision-x7k2p-6c8e5d4f0a1b",
                "namespace": "team-vision",
                "generateName": "alice-vision-x7k2p-",
                "uid": "1", "resourceVersion": "2", "generation": 3,
                "creationTimestamp": "2026-11-20T10:00:00Z",
                "managedFields": [{"manager": "crossplane"}],
                "ownerReferences": [{"kind": "GpuDevWorkspace"}],
                "finalizers": ["finalizer.managedresource.crossplane.io"],
                "labels": {"crossplane.io/composite": "alice-vision-x7k2p"},
                "annotations": {"crossplane.io/composition-resource-name": "pool"}
            },
            "spec": {"managementPolicies": ["*"], "forProvider": {"a": {"b": [1, 2]}}},
            "status": {"conditions": []}
        });
        assert_eq!(
            kept(&observed),
            json!({
                "apiVersion": "gpu.platform.acme.io/v1alpha1",
                "kind": "SpotPool",
                "metadata": {
                    "name": "alice-vision-x7k2p-6c8e5d4f0a1b",
                    "namespace": "team-vision"
                },
                "spec": {"managementPolicies": ["*"], "forProvider": {"a": {"b": [1, 2]}}}
            })
        );
    }
}
