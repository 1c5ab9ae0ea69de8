//! Chooses the `OpenCV` and `PyTorch` releases of a workspace, and their sources.

use api::catalogue::Packages;
use api::policy::{BehaviourVersion, WorkspacePolicy};
use api::workspace::{ChosenImage, WorkspaceParameters};
use function_runtime::outcome::Refusal;
use function_runtime::validation::Violation;

use crate::wheels;

/// The `OpenCV` release of a claim that names none.
const DEFAULT_OPENCV: &str = "4.8.0";

/// The first `OpenCV` release whose wheels are built against `NumPy` 2.
const FIRST_WITH_NUMPY_2: (u32, u32) = (4, 10);

/// The software in the workspace's virtual environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// The `OpenCV` release in the claim, for example `4.8.0`.
    pub opencv: String,
    /// The lines of pip's requirements file for `OpenCV`. `PyTorch` is not in it, because it may come
    /// from another index.
    pub requirements: Vec<String>,
    /// The `PyTorch` release; none if neither claim, policy nor image names one.
    pub pytorch: Option<Pytorch>,
}

/// A `PyTorch` release and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pytorch {
    /// The release, for example `2.12.1`.
    pub version: String,
    /// The source of the release.
    pub source: PytorchSource,
}

/// The source of a `PyTorch` release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PytorchSource {
    /// An interpreter in the image has `PyTorch`.
    Image {
        /// The interpreter, for example `/opt/pytorch/bin/python3`.
        python: String,
    },
    /// pip installs `PyTorch` from a package index.
    Index {
        /// The URL of the index, for example of an internal mirror.
        url: String,
    },
}

/// Chooses the software for an image. If neither claim nor policy names a `PyTorch` release, the
/// release in the image is used, or none if the image has none.
pub fn choose(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    image: &ChosenImage,
    packages: Option<&Packages>,
) -> Result<Software, Refusal> {
    let own = image.pytorch.as_ref();
    let claimed = parameters.pytorch_version.as_ref();
    let resolved = claimed
        .or(policy.defaults.pytorch_version.as_ref())
        .or(own.map(|p| &p.version));
    let pytorch = match (resolved, own, &image.pytorch_index_url) {
        (None, _, _) => None,
        (Some(version), Some(own), _) if *version == own.version => Some(Pytorch {
            version: version.clone(),
            source: PytorchSource::Image {
                python: own.python.clone(),
            },
        }),
        (Some(version), _, Some(url)) => Some(Pytorch {
            version: version.clone(),
            source: PytorchSource::Index { url: url.clone() },
        }),
        (Some(version), own, None) => {
            let has = own.map_or("no PyTorch".to_owned(), |own| {
                format!("PyTorch {}", own.version)
            });
            let problem = format!(
                "{version} is not available: image {} ({}) has {has} and no pytorchIndexUrl for others",
                image.name, image.id
            );
            let path = match claimed {
                Some(_) => "spec.parameters.pytorchVersion",
                None => "input.defaults.pytorchVersion",
            };
            let violation = Violation::new(path, problem);
            return Err(Refusal::parameters(violation));
        }
    };
    let opencv = parameters.opencv_version.as_deref();
    let opencv = opencv.unwrap_or(DEFAULT_OPENCV);
    Ok(Software {
        opencv: opencv.to_owned(),
        requirements: requirements(opencv, policy, packages).map_err(Refusal::parameters)?,
        pytorch,
    })
}

fn requirements(
    opencv: &str,
    policy: &WorkspacePolicy,
    packages: Option<&Packages>,
) -> Result<Vec<String>, Violation> {
    match policy.behaviour_version {
        BehaviourVersion::V1 | BehaviourVersion::V2 => Ok(without_digests(opencv)),
        BehaviourVersion::V3 => {
            wheels::requirements(opencv, packages).ok_or_else(|| unknown(opencv, policy))
        }
    }
}

fn unknown(opencv: &str, policy: &WorkspacePolicy) -> Violation {
    let (first, last) = wheels::range().unwrap_or_default();
    let catalogue = &policy.catalogue.name;
    let problem = format!(
        "the digests of the wheels of {opencv} are unknown: name a release from {first} to {last}, or \
         let the platform team add {opencv} to data.packages.opencv of EnvironmentConfig {catalogue}"
    );
    Violation::new("spec.parameters.opencvVersion", problem)
}

/// The requirements before v3, without digests. pip installs the newest build of the release that the
/// index has.
fn without_digests(opencv: &str) -> Vec<String> {
    // The releases of the wheels have a fourth component, the build number.
    let exact = opencv.split('.').count() > 3;
    let suffix = if exact { "" } else { ".*" };
    let mut lines = vec![format!("opencv-python-headless=={opencv}{suffix}")];
    if release(opencv).is_some_and(|release| release < FIRST_WITH_NUMPY_2) {
        lines.push("numpy<2".to_owned());
    }
    lines
}

fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_opencv_gets_the_numpy_that_its_wheels_are_built_against() {
        assert_eq!(
            without_digests("4.8.0"),
            ["opencv-python-headless==4.8.0.*", "numpy<2"]
        );
        assert_eq!(
            without_digests("4.9.0"),
            ["opencv-python-headless==4.9.0.*", "numpy<2"]
        );
        assert_eq!(
            without_digests("4.10.0"),
            ["opencv-python-headless==4.10.0.*"]
        );
        assert_eq!(
            without_digests("5.0.0"),
            ["opencv-python-headless==5.0.0.*"]
        );
    }

    #[test]
    fn a_full_opencv_release_is_taken_as_it_is() {
        assert_eq!(
            without_digests("4.11.0.86"),
            ["opencv-python-headless==4.11.0.86"]
        );
    }
}
