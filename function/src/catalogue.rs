//! The catalogue: an `EnvironmentConfig` that Crossplane fetches for the function.

use api::catalogue::Catalogue;
use serde_json::{Value, json};

use crate::hold::Hold;
use crate::request::Required;
use crate::schema;

/// The key of the requirement and of the resource that answers it.
pub const REQUIREMENT: &str = "catalogue";
/// Crossplane's API for `EnvironmentConfigs`.
pub const API_VERSION: &str = "apiextensions.crossplane.io/v1beta1";
/// The catalogue's kind.
pub const KIND: &str = "EnvironmentConfig";

/// Reads the catalogue. Whatever keeps it from being read is nothing that the
/// workspace did, so the workspace is held instead of refused.
pub fn read(required: &Required, name: &str) -> Result<Catalogue, Hold> {
    let config = match required {
        Required::Unresolved => {
            return Err(Hold::Unresolved {
                name: name.to_owned(),
            });
        }
        Required::Absent => {
            return Err(Hold::Absent {
                name: name.to_owned(),
            });
        }
        Required::Present(config) => config,
    };
    let data = config.get("data").cloned().unwrap_or(Value::Null);
    let data = if data.is_null() { json!({}) } else { data };
    schema::catalogue(&data).map_err(|violations| Hold::Invalid {
        name: name.to_owned(),
        violations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(required: &Required) -> String {
        read(required, "gpu-workspaces").unwrap_err().to_string()
    }

    #[test]
    fn each_state_of_the_catalogue_says_what_to_do() {
        assert!(
            message(&Required::Unresolved)
                .starts_with("waiting for Crossplane to fetch EnvironmentConfig gpu-workspaces")
        );
        assert!(
            message(&Required::Absent)
                .starts_with("EnvironmentConfig gpu-workspaces does not exist: create it")
        );
        let wrong = Required::Present(json!({"data": {"image": {}}}));
        assert!(message(&wrong).starts_with(
            "EnvironmentConfig gpu-workspaces is not usable: data.image: is no known field"
        ));
    }

    #[test]
    fn an_empty_catalogue_is_one_without_images() {
        assert!(
            read(&Required::Present(json!({})), "c")
                .unwrap()
                .images
                .is_empty()
        );
    }
}
