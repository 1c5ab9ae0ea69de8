//! The catalogue in a file, and the entry that belongs into it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use api::catalogue::{Catalogue, Image};
use serde::Deserialize;

use crate::Outcome;

#[derive(Deserialize)]
struct EnvironmentConfig {
    data: Catalogue,
}

/// The catalogue in a file.
///
/// # Errors
///
/// The file cannot be read, or is no `EnvironmentConfig` with a catalogue.
pub fn catalogue(file: &Path) -> Outcome<Catalogue> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))?;
    let config: EnvironmentConfig = serde_yaml::from_str(&text)
        .map_err(|error| format!("{shown} is no EnvironmentConfig with a catalogue: {error}"))?;
    Ok(config.data)
}

/// A problem with the wishes, in the words of the command line instead of a claim's.
pub fn told(problem: &impl std::fmt::Display, file: &Path) -> String {
    let options = [
        ("spec.parameters.opencvVersion", "--opencv"),
        ("spec.parameters.pytorchVersion", "--pytorch"),
        ("spec.parameters.region", "--region"),
        ("the Composition's input.defaults.image", "--from"),
        (
            "EnvironmentConfig gpu-workspaces",
            &file.display().to_string(),
        ),
    ];
    options
        .iter()
        .fold(problem.to_string(), |told, (field, option)| {
            told.replace(field, option)
        })
}

/// The entry of the image for `data.images` of the catalogue, as YAML.
pub fn entry(region: &str, name: &str, image: &Image) -> Outcome<String> {
    let images = BTreeMap::from([(region, BTreeMap::from([(name, image)]))]);
    Ok(serde_yaml::to_string(&BTreeMap::from([(
        "images", images,
    )]))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_catalogue_is_read() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform/catalogue.yaml");
        assert!(catalogue(&file).unwrap().images.contains_key("us-east-1"));
    }

    #[test]
    fn a_problem_names_options_instead_of_a_claims_fields() {
        let problem = "spec.parameters.opencvVersion: the digests are unknown";
        assert_eq!(
            told(&problem, Path::new("c.yaml")),
            "--opencv: the digests are unknown"
        );
    }

    #[test]
    fn the_entry_has_the_place_that_the_catalogue_gives_it() {
        let image = Image {
            id: "ami-1".into(),
            description: None,
            python: None,
            opencv: None,
            pytorch: None,
            pytorch_index_url: None,
        };
        let text = entry("us-east-1", "baked", &image).unwrap();
        let read: Catalogue = serde_yaml::from_str(&text).unwrap();
        assert_eq!(read.images["us-east-1"]["baked"], image);
    }
}
