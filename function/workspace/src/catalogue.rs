//! The catalogue: `EnvironmentConfigs` that Crossplane fetches for the function.

use std::collections::BTreeMap;

use api::catalogue::{Catalogue, Prices};
use api::policy::WorkspacePolicy;
use function_runtime::outcome::{Hold, Problem};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::validation::{Schema, Violations};
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;

/// The requirement for the first `EnvironmentConfig`; a Composition may name it
/// so as a requirement of its own, which saves Crossplane a call.
pub const REQUIREMENT: &str = "catalogue";
static DATA: Schema<Catalogue> = Schema::of("data");
const API_VERSION: &str = "apiextensions.crossplane.io/v1beta1";
const KIND: &str = "EnvironmentConfig";

/// The catalogue's `EnvironmentConfigs`.
pub fn requirements(policy: &WorkspacePolicy) -> Vec<Requirement> {
    parts(policy)
        .map(|(name, config)| Requirement {
            name,
            api_version: API_VERSION,
            kind: KIND,
            selector: Selector::Named(config.to_owned()),
        })
        .collect()
}

/// Reads the catalogue. Whatever keeps it from being read is nothing that the
/// workspace did, so the workspace is held instead of refused.
pub fn read(policy: &WorkspacePolicy, request: &Request) -> Result<Catalogue, Hold> {
    let mut whole = Catalogue::default();
    let mut known: Vec<&str> = Vec::new();
    for (requirement, config) in parts(policy) {
        let part = read_part(request.required(&requirement), config)?;
        merge(&mut whole, part).map_err(|path| Unusable::Ambiguous {
            first: known.join(" or "),
            second: config.to_owned(),
            path,
        })?;
        known.push(config);
    }
    Ok(whole)
}

/// The catalogue's prices, as far as they can be read: what something costs keeps nothing
/// from running.
pub fn prices(policy: &WorkspacePolicy, request: &Request) -> Option<Prices> {
    parts(policy).find_map(|(requirement, _)| {
        let Required::Present(config) = request.required(&requirement) else {
            return None;
        };
        Prices::deserialize(config.get("data")?.get("prices")?).ok()
    })
}

/// Requirements with the `EnvironmentConfigs` that answer them.
fn parts(policy: &WorkspacePolicy) -> impl Iterator<Item = (String, &str)> {
    let further = policy.catalogue.further.iter();
    let further = further.map(|name| (format!("{REQUIREMENT}-{name}"), name.as_str()));
    let first = (REQUIREMENT.to_owned(), policy.catalogue.name.as_str());
    std::iter::once(first).chain(further)
}

fn read_part(required: Required<'_>, name: &str) -> Result<Catalogue, Unusable> {
    let config = match required {
        Required::Unresolved => {
            return Err(Unusable::Unresolved {
                name: name.to_owned(),
            });
        }
        Required::Absent => {
            return Err(Unusable::Absent {
                name: name.to_owned(),
            });
        }
        Required::Present(config) => config,
    };
    let none = json!({});
    let data = config.get("data").filter(|data| !data.is_null());
    DATA.read(data.unwrap_or(&none))
        .map_err(|violations| Unusable::Invalid {
            name: name.to_owned(),
            violations,
        })
}

/// Adds a part. Whatever two of them have is an error: which one counts would
/// depend on their order. Answers its path.
fn merge(whole: &mut Catalogue, part: Catalogue) -> Result<(), String> {
    merge_maps(&mut whole.images, part.images, "data.images")?;
    merge_maps(&mut whole.networks, part.networks, "data.networks")?;
    merge_maps(&mut whole.owners, part.owners, "data.owners")?;
    match (&whole.prices, part.prices) {
        (Some(_), Some(_)) => return Err("data.prices".to_owned()),
        (None, prices) => whole.prices = prices,
        (Some(_), None) => {}
    }
    Ok(())
}

fn merge_maps<T>(
    whole: &mut BTreeMap<String, T>,
    part: BTreeMap<String, T>,
    path: &str,
) -> Result<(), String> {
    for (key, value) in part {
        if whole.contains_key(&key) {
            return Err(format!("{path}.{key}"));
        }
        whole.insert(key, value);
    }
    Ok(())
}

/// Why the catalogue cannot be used.
#[derive(Clone, Debug, Error)]
enum Unusable {
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
    /// The catalogue does not fit its schema.
    #[error("EnvironmentConfig {name} is not usable: {violations}")]
    Invalid {
        /// The `EnvironmentConfig`.
        name: String,
        /// Fields under `data`.
        violations: Violations,
    },
}

impl Problem for Unusable {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } => "CatalogueUnresolved",
            Self::Absent { .. } => "CatalogueMissing",
            Self::Invalid { .. } | Self::Ambiguous { .. } => "CatalogueInvalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The data of an `EnvironmentConfig`, for a request that is put together by
    /// hand.
    fn answers(configs: &[(&str, Option<Value>)]) -> Request {
        let answer = |(name, data): &(&str, Option<Value>)| {
            let found = data.iter().map(|data| json!({"data": data})).collect();
            ((*name).to_owned(), found)
        };
        Request {
            required: configs.iter().map(answer).collect(),
            ..Request::default()
        }
    }

    fn policy(further: &[&str]) -> WorkspacePolicy {
        let input = json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v1",
            "catalogue": {"name": "gpu-workspaces", "further": further},
            "allowedInstanceTypes": ["g4dn.*"]
        });
        crate::policy::read(Some(&input)).unwrap()
    }

    fn message(configs: &[(&str, Option<Value>)]) -> String {
        let request = answers(configs);
        read(&policy(&["prices"]), &request)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn each_state_of_the_catalogue_says_what_to_do() {
        assert!(
            message(&[])
                .starts_with("waiting for Crossplane to fetch EnvironmentConfig gpu-workspaces")
        );
        assert!(
            message(&[("catalogue", None)])
                .starts_with("EnvironmentConfig gpu-workspaces does not exist: create it")
        );
        assert!(
            message(&[("catalogue", Some(json!({"image": {}})))]).starts_with(
                "EnvironmentConfig gpu-workspaces is not usable: data.image: is no known field"
            )
        );
        assert!(
            message(&[("catalogue", Some(json!({}))), ("catalogue-prices", None)])
                .starts_with("EnvironmentConfig prices does not exist: create it")
        );
    }

    #[test]
    fn an_empty_catalogue_is_one_without_images() {
        let request = answers(&[("catalogue", Some(json!(null)))]);
        let catalogue = read(&policy(&[]), &request).unwrap();
        assert!(catalogue.images.is_empty());
    }

    #[test]
    fn two_configs_are_one_catalogue() {
        let prices = json!({"prices": {"asOf": "2026-11-01", "hourlyUsd": {}}});
        let images = json!({"images": {"us-east-1": {"default": {"id": "ami-1"}}}});
        let request = answers(&[
            ("catalogue", Some(images)),
            ("catalogue-prices", Some(prices)),
        ]);
        let catalogue = read(&policy(&["prices"]), &request).unwrap();
        assert!(catalogue.prices.is_some());
        assert_eq!(catalogue.images.len(), 1);
    }

    #[test]
    fn an_image_that_two_configs_have_is_nobodys_guess() {
        let images = json!({"images": {"us-east-1": {}}});
        let said = message(&[
            ("catalogue", Some(images.clone())),
            ("catalogue-prices", Some(images)),
        ]);
        assert_eq!(
            said,
            "EnvironmentConfig prices repeats data.images.us-east-1, which EnvironmentConfig \
             gpu-workspaces has: remove it from one of them"
        );
    }
}
