//! The machine on which an image for workspaces is built: what it installs, and how the catalogue
//! describes the image afterwards.

use api::catalogue::{Catalogue, Image, ImageOpencv, ImagePytorch};
use api::policy::{BehaviourVersion, WorkspacePolicy};
use api::workspace::{ChosenImage, WorkspaceParameters};
use function_runtime::outcome::{Refusal, Unresolved};
use serde_json::json;

use crate::image;
use crate::software::{self, PytorchSource};
use crate::user_data::UserData;

/// The user of a machine that builds an image.
const OWNER: &str = "image";

pub use crate::setup::failed;

/// The interpreter of a built image. `image.sh` puts it there.
pub const PYTHON: &str = "/opt/workspace-image/bin/python3";
/// The last line that the machine writes to its console.
pub const READY: &str = "gpu-workspace image ready";

/// The build of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageBuild {
    /// The id of the image that the machine starts from.
    pub base: String,
    /// The user data of the machine.
    pub user_data: String,
    /// What the image has, without its id.
    software: software::Software,
    /// Whether its OpenCV has the contrib modules.
    contrib: bool,
    pytorch_index_url: Option<String>,
}

impl ImageBuild {
    /// The build of an image with the software that a workspace with these `wishes` would install, on
    /// top of an image of the catalogue. `wishes` are the parameters of a claim without an owner.
    ///
    /// # Errors
    ///
    /// The catalogue has no such image, or the wishes cannot be met; the message names the field.
    pub fn of(
        catalogue: &Catalogue,
        region: &str,
        key: &str,
        wishes: &serde_json::Value,
    ) -> Result<Self, Unresolved> {
        let policy = policy(key).map_err(|error| Refusal::unwritable("the policy", &error))?;
        let parameters = parameters(region, wishes)
            .map_err(|error| Refusal::unwritable("the wishes for the image", &error))?;
        let chosen: ChosenImage = image::choose(None, None, None, region, catalogue, &policy)?;
        let packages = catalogue.packages.as_ref();
        let software = software::choose(&parameters, &policy, &chosen, packages)?;
        let user_data = UserData {
            behaviour: BehaviourVersion::V3,
            owner: OWNER,
            public_keys: &[],
            sudo: false,
            software: &software,
            ca_certificates: packages.map_or(&[], |packages| &packages.ca_certificates),
            package_index: None,
            image_id: &chosen.id,
            home: false,
            agent: None,
        };
        Ok(Self {
            user_data: user_data.of_an_image()?,
            base: chosen.id,
            contrib: parameters.opencv_contrib,
            software,
            pytorch_index_url: chosen.pytorch_index_url,
        })
    }

    /// The entry of the built image in the catalogue.
    pub fn entry(&self, id: &str, description: &str) -> Image {
        Image {
            id: id.to_owned(),
            description: Some(description.to_owned()),
            python: Some(PYTHON.to_owned()),
            opencv: Some(ImageOpencv {
                version: self.software.opencv.clone(),
                contrib: self.contrib,
            }),
            pytorch: self.software.pytorch.as_ref().map(|own| ImagePytorch {
                version: own.version.clone(),
                python: PYTHON.to_owned(),
            }),
            pytorch_index_url: self.pytorch_index_url.clone(),
        }
    }

    /// What a machine of the image no longer does, for people.
    pub fn saves(&self) -> Vec<String> {
        let index = self.software.pytorch.iter();
        let index = index.filter(|own| matches!(own.source, PytorchSource::Index { .. }));
        let pytorch = index.map(|own| format!("install PyTorch {}", own.version));
        let opencv = (!self.software.requirements.is_empty())
            .then(|| format!("install OpenCV {}", self.software.opencv));
        pytorch.chain(opencv).collect()
    }
}

fn policy(key: &str) -> Result<WorkspacePolicy, serde_json::Error> {
    serde_json::from_value(json!({
        "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
        "kind": "WorkspacePolicy",
        "behaviourVersion": "v3",
        "catalogue": {"name": "gpu-workspaces"},
        "defaults": {"image": key},
        "allowedInstanceTypes": ["any.type"],
    }))
}

fn parameters(
    region: &str,
    wishes: &serde_json::Value,
) -> Result<WorkspaceParameters, serde_json::Error> {
    let mut parameters = json!({"region": region});
    if let (Some(all), Some(wishes)) = (parameters.as_object_mut(), wishes.as_object()) {
        all.extend(wishes.clone());
    }
    serde_json::from_value(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let index = "https://packages.acme.example/pytorch/cu130";
        serde_json::from_value(json!({"images": {"us-east-1": {"default": {
            "id": "ami-00000000000c0de01",
            "pytorch": {"version": "2.12.1", "python": "/opt/pytorch/bin/python3"},
            "pytorchIndexUrl": index,
        }}}}))
        .unwrap()
    }

    fn build(wishes: &serde_json::Value) -> Result<ImageBuild, Unresolved> {
        ImageBuild::of(&catalogue(), "us-east-1", "default", wishes)
    }

    /// Otherwise machines of the image would install again what it has.
    #[test]
    fn a_workspace_on_the_built_image_installs_nothing() {
        let wishes = json!({"opencvVersion": "4.12.0", "opencvContrib": true});
        let built = build(&wishes).unwrap();
        assert_eq!(built.saves(), ["install OpenCV 4.12.0"]);
        let mut catalogue = catalogue();
        let images = catalogue.images.get_mut("us-east-1").unwrap();
        images.insert("built".into(), built.entry("ami-1", "built"));
        let next = ImageBuild::of(&catalogue, "us-east-1", "built", &wishes).unwrap();
        assert_eq!(next.saves(), Vec::<String>::new());
        assert_eq!(next.base, "ami-1");
    }

    #[test]
    fn pytorch_of_an_index_is_part_of_the_image() {
        let built = build(&json!({"pytorchVersion": "2.13.0"})).unwrap();
        assert_eq!(
            built.saves(),
            ["install PyTorch 2.13.0", "install OpenCV 4.8.0"]
        );
        let entry = built.entry("ami-1", "built");
        assert_eq!(entry.pytorch.unwrap().version, "2.13.0");
    }

    #[test]
    fn the_machine_writes_the_closing_line_and_looks_for_the_interpreter_in_one_place() {
        let built = build(&json!({})).unwrap();
        let echoed = format!("echo '{READY}' >/dev/console");
        assert!(built.user_data.contains(&echoed));
        let moved = "mv /opt/workspace /opt/workspace-image";
        assert!(built.user_data.contains(moved));
        assert!(PYTHON.starts_with("/opt/workspace-image/"));
    }

    #[test]
    fn a_wish_that_cannot_be_met_names_its_field() {
        let unknown = build(&json!({"opencvVersion": "4.99.0"})).unwrap_err();
        let said = format!("{unknown:?}");
        assert!(said.contains("spec.parameters.opencvVersion"), "{said}");
    }
}
