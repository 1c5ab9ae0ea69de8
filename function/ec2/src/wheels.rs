//! The wheels of `OpenCV` and `NumPy` that a machine installs from behaviour version v3 on, by their
//! digests. An index that serves another file gets no chance to run it.

use api::catalogue::Packages;

mod table;

use table::{NUMPY, OPENCV, OPENCV_CONTRIB, Wheels};

/// The `OpenCV` of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opencv<'a> {
    /// The release, for example `4.8.0` or `4.8.0.76`.
    pub release: &'a str,
    /// Whether it has the contrib modules.
    pub contrib: bool,
}

impl Opencv<'_> {
    /// The name of the project in the package index.
    pub fn project(self) -> &'static str {
        if self.contrib {
            "opencv-contrib-python-headless"
        } else {
            "opencv-python-headless"
        }
    }
}

/// The lines of a requirements file for an `OpenCV`; none if its wheels are unknown. The catalogue's
/// releases come first.
pub fn requirements(opencv: Opencv<'_>, packages: Option<&Packages>) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    let index = packages.and_then(|packages| packages.index_url.as_ref());
    lines.extend(index.map(|url| format!("--index-url {url}")));
    lines.push("--only-binary :all:".to_owned());
    let in_catalogue = packages.map(|packages| {
        if opencv.contrib {
            &packages.opencv_contrib
        } else {
            &packages.opencv
        }
    });
    if let Some(own) = in_catalogue.and_then(|known| known.get(opencv.release)) {
        lines.extend(own.iter().cloned());
        return own.iter().all(|line| has_digest(line)).then_some(lines);
    }
    let wheels = newest(opencv)?;
    lines.push(line(opencv.project(), wheels));
    lines.push(line("numpy", numpy_for(wheels)?));
    Some(lines)
}

/// The oldest and the newest release of `OpenCV` 4 or later with known wheels.
pub fn range(contrib: bool) -> Option<(&'static str, &'static str)> {
    let all = known(contrib);
    let mut recent = all
        .iter()
        .filter(|wheels| number(wheels.release) >= vec![4]);
    Some((recent.next()?.release, all.last()?.release))
}

fn known(contrib: bool) -> &'static [Wheels] {
    if contrib { OPENCV_CONTRIB } else { OPENCV }
}

/// Whether a line of the catalogue names a release with a digest, and is one line without options.
/// The schema of the catalogue does not reach the values of a map.
fn has_digest(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_exact = words.next().is_some_and(|project| {
        project.contains("==") && project.starts_with(|c: char| c.is_ascii_alphanumeric())
    });
    let digests: Vec<_> = words.collect();
    let is_digest = |word: &&str| {
        let digest = word.strip_prefix("--hash=sha256:");
        digest.is_some_and(|digest| {
            digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit())
        })
    };
    is_exact
        && line.chars().all(|c| c.is_ascii_graphic() || c == ' ')
        && !digests.is_empty()
        && digests.iter().all(is_digest)
}

/// The newest release that a claim's release means: three numbers mean the newest build of them.
fn newest(opencv: Opencv<'_>) -> Option<Wheels> {
    let asked = number(opencv.release);
    if asked.len() < 3 {
        return None;
    }
    let mut fitting = known(opencv.contrib).iter().rev();
    fitting
        .find(|wheels| number(wheels.release).starts_with(&asked))
        .copied()
}

/// Wheels of `OpenCV` before 4.10 are built against `NumPy` 1, later ones against `NumPy` 2.
fn numpy_for(opencv: Wheels) -> Option<Wheels> {
    let is_old = number(opencv.release) < vec![4, 10];
    let wheels = if is_old { NUMPY.first() } else { NUMPY.last() };
    wheels.copied()
}

/// The numbers of a release. A part that is no number fits no release.
fn number(release: &str) -> Vec<u32> {
    let parts = release.split('.');
    parts.map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

/// A requirement with its digests, in one line. pip installs a wheel only if its digest is listed.
fn line(project: &str, wheels: Wheels) -> String {
    let digests = wheels.sha256.iter();
    let hashes: Vec<_> = digests
        .map(|digest| format!(" --hash=sha256:{digest}"))
        .collect();
    format!("{project}=={}{}", wheels.release, hashes.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opencv(release: &str) -> Opencv<'_> {
        let contrib = false;
        Opencv { release, contrib }
    }

    fn releases(opencv: Opencv<'_>) -> Vec<String> {
        let lines = requirements(opencv, None).unwrap();
        let lines = lines.iter().filter(|line| line.contains("=="));
        let words = lines.map(|line| line.split(' ').next().unwrap().to_owned());
        words.collect()
    }

    #[test]
    fn three_numbers_mean_the_newest_build_and_four_that_build() {
        let of = |release| releases(opencv(release));
        let headless = |release: &str| format!("opencv-python-headless=={release}");
        assert_eq!(of("4.10.0"), [&headless("4.10.0.84"), "numpy==2.2.6"]);
        assert_eq!(of("4.10.0.82"), [&headless("4.10.0.82"), "numpy==2.2.6"]);
        assert_eq!(of("4.8.0"), [&headless("4.8.0.76"), "numpy==1.26.4"]);
        assert_eq!(of("4.9.0"), [&headless("4.9.0.80"), "numpy==1.26.4"]);
        assert_eq!(of("5.0.0"), [&headless("5.0.0.93"), "numpy==2.2.6"]);
    }

    #[test]
    fn a_release_without_known_wheels_is_known_to_nobody() {
        for unknown in ["4.99.0", "4.8", "4.1.0", "", "latest", "4.10.0.8"] {
            assert_eq!(requirements(opencv(unknown), None), None, "{unknown}");
        }
        assert_eq!(range(false), Some(("4.5.5.64", "5.0.0.93")));
    }

    #[test]
    fn the_contrib_modules_come_with_a_project_of_their_own() {
        let contrib = true;
        let release = "4.10.0";
        let project = "opencv-contrib-python-headless==4.10.0.84";
        assert_eq!(
            releases(Opencv { release, contrib }),
            [project, "numpy==2.2.6"]
        );
    }

    #[test]
    fn every_line_has_a_digest_for_each_processor() {
        for wheels in OPENCV.iter().chain(OPENCV_CONTRIB).chain(NUMPY) {
            assert!(wheels.sha256.len() >= 2, "{}", wheels.release);
            let are_digests =
                |digest: &&str| digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit());
            assert!(wheels.sha256.iter().all(are_digests), "{}", wheels.release);
        }
        let lines = requirements(opencv("4.8.0"), None).unwrap();
        assert_eq!(lines[0], "--only-binary :all:");
        assert!(
            lines[1..]
                .iter()
                .all(|line| line.contains(" --hash=sha256:"))
        );
    }

    #[test]
    fn the_catalogue_names_the_index_and_adds_releases() {
        let digest = "0f".repeat(32);
        let own = [format!(
            "opencv-python-headless==4.99.0.1 --hash=sha256:{digest}"
        )];
        let packages = Packages {
            index_url: Some("https://pypi.acme.example/simple".to_owned()),
            opencv: [("4.99.0".to_owned(), own.to_vec())].into(),
            ..Packages::default()
        };
        let lines = requirements(opencv("4.99.0"), Some(&packages)).unwrap();
        let index = "--index-url https://pypi.acme.example/simple";
        assert_eq!(lines, [index, "--only-binary :all:", &own[0]]);
        assert!(requirements(opencv("4.98.0"), Some(&packages)).is_none());
        for wrong in [
            "opencv-python-headless==4.99.0.1",
            "opencv-python-headless --hash=sha256:00",
            "--index-url https://elsewhere.example",
            "numpy==2.4.0 --hash=sha256:00",
            "numpy==2.4.0\n--index-url https://elsewhere.example",
        ] {
            let mut packages = packages.clone();
            let lines = packages.opencv.get_mut("4.99.0").unwrap();
            lines.push(wrong.to_owned());
            let known = requirements(opencv("4.99.0"), Some(&packages));
            assert_eq!(known, None, "{wrong}");
        }
    }
}
