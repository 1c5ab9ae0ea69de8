//! Reads the catalogue from the `EnvironmentConfigs` that Crossplane fetches for the function.

use std::collections::BTreeMap;

use api::catalogue::{Catalogue, Prices};
use api::policy::WorkspacePolicy;
use function_runtime::outcome::{Hold, Problem};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::Requirement;
use function_runtime::validation::{Schema, Violation, Violations};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::environment_config;

/// Name of the requirement for the first `EnvironmentConfig`. A Composition may have a requirement
/// with this name in its pipeline step, which saves Crossplane one call.
pub const REQUIREMENT: &str = "catalogue";
static DATA: Schema<Catalogue> = Schema::of("data");

/// The requirements for the policy's `EnvironmentConfigs`.
pub fn requirements(policy: &WorkspacePolicy) -> Vec<Requirement> {
    parts(policy)
        .map(|(name, config)| environment_config::requirement(name, config))
        .collect()
}

/// Reads and merges the catalogue. A catalogue that cannot be read is not an error of the claim, so
/// the workspace is held and not refused.
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

/// The catalogue's prices; none if they cannot be read. Missing prices never keep a workspace from
/// running.
pub fn prices(policy: &WorkspacePolicy, request: &Request) -> Option<Prices> {
    parts(policy).find_map(|(requirement, _)| {
        let Required::Present(config) = request.required(&requirement) else {
            return None;
        };
        Prices::deserialize(config.get("data")?.get("prices")?).ok()
    })
}

/// The names of the requirements, each with the name of its `EnvironmentConfig`.
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
    valid(environment_config::data(config)).map_err(|violations| Unusable::Invalid {
        name: name.to_owned(),
        violations,
    })
}

/// Reads one part. Data that was emptied by mistake is no empty catalogue: the next instance would
/// boot without its owner's keys.
fn valid(data: Option<&Value>) -> Result<Catalogue, Violations> {
    match data {
        Some(data) => DATA.read(data),
        None => Err(Violation::new("data", "is empty: restore its entries").into()),
    }
}

/// Adds a part to the catalogue. An entry that both have is an error, because its value would
/// depend on the order of the parts. The error is the path of the entry.
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
    /// Crossplane has not fetched the `EnvironmentConfig` yet.
    #[error("waiting for Crossplane to fetch EnvironmentConfig {name}")]
    Unresolved {
        /// The `EnvironmentConfig`.
        name: String,
    },
    /// The `EnvironmentConfig` does not exist.
    #[error(
        "EnvironmentConfig {name} does not exist: create it, or name another one in the \
         Composition's input.catalogue.name"
    )]
    Absent {
        /// The `EnvironmentConfig`.
        name: String,
    },
    /// Two `EnvironmentConfigs` have the same entry.
    #[error(
        "EnvironmentConfig {second} repeats {path}, which EnvironmentConfig {first} has: remove \
         it from one of them"
    )]
    Ambiguous {
        /// Names of the `EnvironmentConfigs` of which one already has the entry.
        first: String,
        /// The `EnvironmentConfig` that repeats the entry.
        second: String,
        /// Path of the repeated entry, for example `data.images.us-east-1`.
        path: String,
    },
    /// The `EnvironmentConfig` does not match the schema of the catalogue.
    #[error("EnvironmentConfig {name} is not usable: {violations}")]
    Invalid {
        /// The `EnvironmentConfig`.
        name: String,
        /// Violations of fields under `data`.
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
    use serde_json::json;

    /// A request with the given `EnvironmentConfigs` as required resources.
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
    fn each_problem_of_the_catalogue_names_the_next_step() {
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
            message(&[
                ("catalogue", Some(json!({"owners": {}}))),
                ("catalogue-prices", None)
            ])
            .starts_with("EnvironmentConfig prices does not exist: create it")
        );
    }

    #[test]
    fn a_catalogue_that_somebody_emptied_is_not_used() {
        for data in [json!(null), json!({})] {
            let said = message(&[("catalogue", Some(data))]);
            assert_eq!(
                said,
                "EnvironmentConfig gpu-workspaces is not usable: data: is empty: restore its \
                 entries"
            );
        }
    }

    #[test]
    fn two_configs_are_merged_into_one_catalogue() {
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
    fn an_image_in_two_configs_is_refused_and_both_are_named() {
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
