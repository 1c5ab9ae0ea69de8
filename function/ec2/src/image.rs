//! Chooses the image of a workspace, and keeps it until the claim names another one.

use std::collections::BTreeMap;

use api::catalogue::{Catalogue, Image};
use api::policy::{BehaviourVersion, WorkspacePolicy};
use api::workspace::{ChosenImage, WorkspaceParameters};
use function_runtime::outcome::{Hold, Problem, Refusal, Unresolved};
use function_runtime::validation::{Violation, Violations};
use thiserror::Error;

use crate::choice::Choice;

const DEFAULT_KEY: &str = "default";

/// The image that the claim or its flavor names.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name of the image in the catalogue.
    pub key: &'a str,
    /// The field that names it.
    pub path: &'static str,
}

impl<'a> Named<'a> {
    /// The image that the claim names, or else its flavor; none if only the policy names one.
    pub fn of(parameters: &'a WorkspaceParameters, choice: &'a Choice) -> Option<Self> {
        let claimed = parameters.image.as_deref();
        let claimed = claimed.map(|key| (key, "spec.parameters.image"));
        let flavored = choice.image.as_deref();
        let named = claimed.or(flavored.map(|key| (key, "spec.parameters.flavor")));
        named.map(|(key, path)| Self { key, path })
    }
}

/// Refuses an image that the policy does not allow.
pub fn check(named: Option<Named<'_>>, policy: &WorkspacePolicy) -> Result<(), Violations> {
    match (named, &policy.allowed_images) {
        (Some(named), Some(allowed)) if !allowed.iter().any(|key| key == named.key) => {
            let image = format!("image {}", named.key);
            Err(Violation::not_allowed(named.path, image, allowed).into())
        }
        _ => Ok(()),
    }
}

/// Chooses the image. A recorded image is kept even if the catalogue or the policy's default changes,
/// until claim or flavor names another one. From behaviour version v3 on, an entry with the same name
/// and AMI id replaces the record: the platform team can correct a wrong entry that makes the setup
/// fail. If a pool exists without a record (for example after a restore of the composite without its
/// status), the image that the pool boots is kept.
pub fn choose(
    recorded: Option<&ChosenImage>,
    booted: Option<&str>,
    named: Option<Named<'_>>,
    region: &str,
    catalogue: &Catalogue,
    policy: &WorkspacePolicy,
) -> Result<ChosenImage, Unresolved> {
    let none = BTreeMap::new();
    let images = catalogue.images.get(region).unwrap_or(&none);
    let recorded = recorded.filter(|image| named.is_none_or(|named| named.key == image.name));
    if let Some(recorded) = recorded {
        let listed = images.get(&recorded.name);
        let corrected = listed.filter(|image| {
            policy.behaviour_version == BehaviourVersion::V3 && image.id == recorded.id
        });
        return Ok(
            corrected.map_or_else(|| recorded.clone(), |image| chosen(&recorded.name, image))
        );
    }
    let name = &policy.catalogue.name;
    if let Some(id) = booted.filter(|_| named.is_none()) {
        let listed = images.iter().find(|(_, image)| image.id == id);
        let (key, image) = listed.ok_or_else(|| {
            Hold::from(ImageMissing::Unknown {
                name: name.clone(),
                region: region.to_owned(),
                id: id.to_owned(),
            })
        })?;
        return Ok(chosen(key, image));
    }
    if images.is_empty() {
        return Err(unknown_region(region, catalogue, name).into());
    }
    if let Some(Named { key, path }) = named {
        let image = images.get(key).ok_or_else(|| {
            let problem = format!(
                "EnvironmentConfig {name} has no image {key} in {region}; it has {}",
                listed(images.keys())
            );
            Refusal::parameters(Violation::new(path, problem))
        })?;
        return Ok(chosen(key, image));
    }
    let key = policy.defaults.image.as_deref().unwrap_or(DEFAULT_KEY);
    let image = images.get(key).ok_or_else(|| {
        Hold::from(ImageMissing::NotListed {
            name: name.clone(),
            region: region.to_owned(),
            key: key.to_owned(),
            known: listed(images.keys()),
        })
    })?;
    Ok(chosen(key, image))
}

fn chosen(key: &str, image: &Image) -> ChosenImage {
    ChosenImage {
        id: image.id.clone(),
        name: key.to_owned(),
        python: image.python.clone(),
        opencv: image.opencv.clone(),
        pytorch: image.pytorch.clone(),
        pytorch_index_url: image.pytorch_index_url.clone(),
    }
}

fn unknown_region(region: &str, catalogue: &Catalogue, name: &str) -> Refusal {
    let known = catalogue
        .images
        .iter()
        .filter(|(_, images)| !images.is_empty());
    let known = listed(known.map(|(region, _)| region));
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known
    };
    let problem =
        format!("{region} has no images in EnvironmentConfig {name}; regions that have: {known}");
    Refusal::parameters(Violation::new("spec.parameters.region", problem))
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Why there is no image to boot.
#[derive(Clone, Debug, Error)]
enum ImageMissing {
    /// The catalogue has images for the region, but not the image of the policy.
    #[error(
        "EnvironmentConfig {name} has no data.images.{region}.{key}: add it, or set the \
         Composition's input.defaults.image to one of {known}"
    )]
    NotListed {
        /// The name of the `EnvironmentConfig`.
        name: String,
        /// The region of the workspace.
        region: String,
        /// The name of the image.
        key: String,
        /// The names of the images that exist.
        known: String,
    },
    /// The pool boots an image that neither the status nor the catalogue has.
    #[error(
        "the SpotPool boots {id}, which status.image does not record and EnvironmentConfig \
         {name} does not list under data.images.{region}: add it there"
    )]
    Unknown {
        /// The name of the `EnvironmentConfig`.
        name: String,
        /// The region of the workspace.
        region: String,
        /// The AMI id.
        id: String,
    },
}

impl Problem for ImageMissing {
    fn reason(&self) -> &'static str {
        match self {
            Self::NotListed { .. } | Self::Unknown { .. } => "ImageMissing",
        }
    }
}
