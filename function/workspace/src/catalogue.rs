//! Reads the catalogue from the `EnvironmentConfigs` that Crossplane fetches for the function.

use std::collections::BTreeMap;

use api::catalogue::{Catalogue, Prices};
use api::patterns;
use api::policy::{CatalogueEntry, CatalogueReference, WorkspacePolicy};
use function_runtime::outcome::{Hold, Problem};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::Requirement;
use function_runtime::validation::{Schema, Violation, Violations};
use serde_json::Value;
use thiserror::Error;

use crate::environment_config;

/// Name of the requirement for the first `EnvironmentConfig`, which a Composition may fetch.
pub const REQUIREMENT: &str = "catalogue";
static DATA: Schema<Catalogue> = Schema::of("data", patterns::message);

/// The catalogue, with messages about entries that have no effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// The messages. They are not errors.
    pub notices: Vec<String>,
}

/// The requirements for the policy's `EnvironmentConfigs`.
pub fn requirements(policy: &WorkspacePolicy) -> Vec<Requirement> {
    requirements_of(&policy.catalogue)
}

/// The requirements for the `EnvironmentConfigs` of a catalogue.
pub fn requirements_of(reference: &CatalogueReference) -> Vec<Requirement> {
    parts(reference)
        .map(|part| environment_config::requirement(part.requirement, part.config))
        .collect()
}

/// Reads the policy's catalogue. If it cannot be read, the workspace is held and not refused.
pub fn read(policy: &WorkspacePolicy, request: &Request) -> Result<Known, Hold> {
    of(&policy.catalogue, request)
}

/// Reads and merges a catalogue. A part adds only the entries that it may provide.
pub fn of(reference: &CatalogueReference, request: &Request) -> Result<Known, Hold> {
    let mut whole = Known::default();
    let mut known: Vec<&str> = Vec::new();
    for part in parts(reference) {
        let data = read_part(
            request.required(&part.requirement),
            &part,
            &mut whole.notices,
        )?;
        merge(&mut whole.catalogue, data).map_err(|path| Unusable::Ambiguous {
            first: known.join(" or "),
            second: part.config.to_owned(),
            path,
        })?;
        known.push(part.config);
    }
    Ok(whole)
}

/// The catalogue's prices; none if they cannot be read. Missing prices never keep a workspace from
/// running.
pub fn prices(policy: &WorkspacePolicy, request: &Request) -> Option<Prices> {
    let with_prices =
        parts(&policy.catalogue).filter(|part| part.provides.contains(&CatalogueEntry::Prices));
    with_prices.into_iter().find_map(|part| {
        let Required::Present(config) = request.required(&part.requirement) else {
            return None;
        };
        config.at(&["data", "prices"])?.read().ok()
    })
}

/// One of the catalogue's `EnvironmentConfigs`.
struct Part<'a> {
    /// The name of the requirement.
    requirement: String,
    /// The name of the `EnvironmentConfig`.
    config: &'a str,
    /// The entries that it provides.
    provides: &'a [CatalogueEntry],
}

fn parts(reference: &CatalogueReference) -> impl Iterator<Item = Part<'_>> {
    let CatalogueReference {
        name,
        further,
        parts,
    } = reference;
    let first = Part {
        requirement: REQUIREMENT.to_owned(),
        config: name,
        provides: &CatalogueEntry::ALL,
    };
    let prices = further
        .iter()
        .map(|name| (name, &[CatalogueEntry::Prices][..]));
    let parts = parts
        .iter()
        .map(|part| (&part.name, part.provides.as_slice()));
    let further = prices.chain(parts).map(|(name, provides)| Part {
        requirement: format!("{REQUIREMENT}-{name}"),
        config: name,
        provides,
    });
    std::iter::once(first).chain(further)
}

fn read_part(
    required: Required<'_>,
    part: &Part<'_>,
    notices: &mut Vec<String>,
) -> Result<Catalogue, Unusable> {
    let name = part.config.to_owned();
    let config = match required {
        Required::Unresolved => return Err(Unusable::Unresolved { name }),
        Required::Absent => return Err(Unusable::Absent { name }),
        Required::Present(config) => config,
    };
    let data = environment_config::data(config).map(|data| provided(data, part, notices));
    valid(data.as_ref()).map_err(|violations| Unusable::Invalid { name, violations })
}

/// The data of a part without the entries that it must not provide.
fn provided(mut data: Value, part: &Part<'_>, notices: &mut Vec<String>) -> Value {
    let foreign: Vec<_> = CatalogueEntry::ALL
        .into_iter()
        .filter(|entry| !part.provides.contains(entry) && data.get(entry.field()).is_some())
        .map(CatalogueEntry::field)
        .collect();
    let Some(fields) = data.as_object_mut().filter(|_| !foreign.is_empty()) else {
        return data;
    };
    let paths: Vec<_> = foreign
        .iter()
        .map(|field| format!("data.{field}"))
        .collect();
    notices.push(format!(
        "EnvironmentConfig {} has {} without effect: the policy lets it provide {} only \
         (input.catalogue.parts)",
        part.config,
        paths.join(" and "),
        named(part.provides),
    ));
    fields.retain(|field, _| !foreign.contains(&field.as_str()));
    data
}

fn named(entries: &[CatalogueEntry]) -> String {
    let names: Vec<_> = entries.iter().map(|entry| entry.field()).collect();
    names.join(" and ")
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
    let Catalogue {
        images,
        instance_profiles,
        instance_types,
        networks,
        owners,
        packages,
        prices,
    } = part;
    let described = &mut whole.instance_types;
    merge_maps(&mut whole.images, images, "data.images")?;
    merge_maps(described, instance_types, "data.instanceTypes")?;
    let profiles = &mut whole.instance_profiles;
    merge_whole(profiles, instance_profiles, "data.instanceProfiles")?;
    merge_maps(&mut whole.networks, networks, "data.networks")?;
    merge_maps(&mut whole.owners, owners, "data.owners")?;
    merge_whole(&mut whole.packages, packages, "data.packages")?;
    merge_whole(&mut whole.prices, prices, "data.prices")
}

fn merge_whole<T>(whole: &mut Option<T>, part: Option<T>, path: &str) -> Result<(), String> {
    match (&whole, part) {
        (Some(_), Some(_)) => return Err(path.to_owned()),
        (None, part) => *whole = part,
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

    fn is_pending(&self) -> bool {
        matches!(self, Self::Unresolved { .. })
    }
}

#[cfg(test)]
mod tests;
