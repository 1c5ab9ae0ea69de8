//! Chooses the `OpenCV` and `PyTorch` releases of a workspace, and their sources.

use api::catalogue::{ImageOpencv, Packages};
use api::policy::{BehaviourVersion, WorkspacePolicy};
use api::workspace::{ChosenImage, WorkspaceParameters};
use function_runtime::outcome::Refusal;
use function_runtime::validation::Violation;

use crate::wheels::{self, Opencv};

/// The `OpenCV` release of a claim that names none.
const DEFAULT_OPENCV: &str = "4.8.0";

/// The first `OpenCV` release whose wheels are built against `NumPy` 2.
const FIRST_WITH_NUMPY_2: (u32, u32) = (4, 10);

/// The software in the workspace's virtual environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// The `OpenCV` release, for example `4.8.0`.
    pub opencv: String,
    /// The lines of pip's requirements file for `OpenCV`; none if the image has it. `PyTorch` is not
    /// in them, because it may come from another index.
    pub requirements: Vec<String>,
    /// The `PyTorch` release; none if neither claim, policy nor image names one.
    pub pytorch: Option<Pytorch>,
    /// The interpreter of the image from which the environment is made, for example
    /// `/opt/pytorch/bin/python3`. The environment has the packages of the interpreter, too. None
    /// stands for the system's interpreter without its packages.
    pub python: Option<String>,
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

/// Chooses the software for an image. If neither claim nor policy names a release, the release in
/// the image is used. Without one there, the workspace has no `PyTorch`, and the default `OpenCV`.
pub fn choose(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    image: &ChosenImage,
    packages: Option<&Packages>,
) -> Result<Software, Refusal> {
    let pytorch = pytorch(parameters, policy, image).map_err(Refusal::parameters)?;
    let own = image.opencv.as_ref();
    let own = own.filter(|_| policy.behaviour_version == BehaviourVersion::V3);
    let asked = parameters.opencv_version.as_deref();
    if let Some(own) = own.filter(|own| brings(own, asked, parameters.opencv_contrib)) {
        return Ok(Software {
            opencv: asked.unwrap_or(&own.version).to_owned(),
            requirements: Vec::new(),
            python: Some(python_of_opencv(image, own, policy).map_err(Refusal::parameters)?),
            pytorch,
        });
    }
    let opencv = Opencv {
        release: asked.unwrap_or(DEFAULT_OPENCV),
        contrib: parameters.opencv_contrib,
    };
    let from_image = pytorch.as_ref().and_then(|pytorch| match &pytorch.source {
        PytorchSource::Image { python } => Some(python),
        PytorchSource::Index { .. } => None,
    });
    Ok(Software {
        requirements: requirements(opencv, policy, packages).map_err(Refusal::parameters)?,
        opencv: opencv.release.to_owned(),
        python: image.python.as_ref().or(from_image).cloned(),
        pytorch,
    })
}

/// Whether the image has what the claim asks for. Three numbers mean any build of that release. An
/// installation with the contrib modules has all that one without them has.
fn brings(own: &ImageOpencv, asked: Option<&str>, contrib: bool) -> bool {
    let fits = |asked: &str| {
        let rest = own.version.strip_prefix(asked);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    asked.is_none_or(fits) && (own.contrib || !contrib)
}

/// The interpreter that imports the image's `OpenCV`.
fn python_of_opencv(
    image: &ChosenImage,
    own: &ImageOpencv,
    policy: &WorkspacePolicy,
) -> Result<String, Violation> {
    let with_pytorch = || Some(image.pytorch.as_ref()?.python.clone());
    image.python.clone().or_else(with_pytorch).ok_or_else(|| {
        let problem = format!(
            "EnvironmentConfig {} says that image {} ({}) has OpenCV {} and not which interpreter \
             imports it: the platform team adds python to the image",
            policy.catalogue.name, image.name, image.id, own.version
        );
        Violation::new("spec.parameters.opencvVersion", problem)
    })
}

/// The `PyTorch` release of claim, policy or image; none if none of them names one.
fn pytorch(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    image: &ChosenImage,
) -> Result<Option<Pytorch>, Violation> {
    let own = image.pytorch.as_ref();
    let claimed = parameters.pytorch_version.as_ref();
    let resolved = claimed
        .or(policy.defaults.pytorch_version.as_ref())
        .or(own.map(|p| &p.version));
    let Some(version) = resolved else {
        return Ok(None);
    };
    let source = match (own, &image.pytorch_index_url) {
        (Some(own), _) if *version == own.version => PytorchSource::Image {
            python: own.python.clone(),
        },
        (_, Some(url)) => PytorchSource::Index { url: url.clone() },
        (own, None) => {
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
            return Err(Violation::new(path, problem));
        }
    };
    Ok(Some(Pytorch {
        version: version.clone(),
        source,
    }))
}

fn requirements(
    opencv: Opencv<'_>,
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

fn unknown(opencv: Opencv<'_>, policy: &WorkspacePolicy) -> Violation {
    let (first, last) = wheels::range(opencv.contrib).unwrap_or_default();
    let (catalogue, release) = (&policy.catalogue.name, opencv.release);
    let field = if opencv.contrib {
        "opencvContrib"
    } else {
        "opencv"
    };
    let problem = format!(
        "the digests of the wheels of {release} are unknown: name a release from {first} to {last}, or \
         let the platform team add {release} to data.packages.{field} of EnvironmentConfig {catalogue}"
    );
    Violation::new("spec.parameters.opencvVersion", problem)
}

/// The requirements before v3, without digests. pip installs the newest build of the release that the
/// index has.
fn without_digests(opencv: Opencv<'_>) -> Vec<String> {
    let (project, asked) = (opencv.project(), opencv.release);
    // The releases of the wheels have a fourth component, the build number.
    let exact = asked.split('.').count() > 3;
    let suffix = if exact { "" } else { ".*" };
    let mut lines = vec![format!("{project}=={asked}{suffix}")];
    if release(asked).is_some_and(|release| release < FIRST_WITH_NUMPY_2) {
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

    fn without_contrib(release: &str) -> Vec<String> {
        let contrib = false;
        without_digests(Opencv { release, contrib })
    }

    #[test]
    fn an_old_opencv_gets_the_numpy_that_its_wheels_are_built_against() {
        for old in ["4.8.0", "4.9.0"] {
            let project = format!("opencv-python-headless=={old}.*");
            assert_eq!(without_contrib(old), [project.as_str(), "numpy<2"]);
        }
        for new in ["4.10.0", "5.0.0"] {
            let project = format!("opencv-python-headless=={new}.*");
            assert_eq!(without_contrib(new), [project]);
        }
    }

    #[test]
    fn a_full_opencv_release_is_taken_as_it_is() {
        assert_eq!(
            without_contrib("4.11.0.86"),
            ["opencv-python-headless==4.11.0.86"]
        );
    }

    #[test]
    fn the_image_brings_any_build_of_a_release_and_contrib_modules_only_if_it_has_them() {
        let own = |contrib| ImageOpencv {
            version: "4.12.0.88".into(),
            contrib,
        };
        assert!(brings(&own(false), None, false));
        assert!(brings(&own(false), Some("4.12.0"), false));
        assert!(brings(&own(true), Some("4.12.0.88"), false));
        assert!(brings(&own(true), Some("4.12.0"), true));
        assert!(!brings(&own(false), Some("4.12.0"), true));
        assert!(!brings(&own(false), Some("4.12.0.8"), false));
        assert!(!brings(&own(false), Some("4.1"), false));
    }
}
