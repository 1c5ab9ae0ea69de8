//! Pushes package files to a registry: as one image, or as an index with one image per platform.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use super::build::Built;
use super::contents::ORGANISATION;
use crate::process::output;

/// Pushes a package. `command` calls the crossplane CLI. Returns the package's reference.
pub(super) fn push(
    mut command: Command,
    registry: &str,
    built: &Built,
) -> Result<String, Box<dyn Error>> {
    let name = built.package.name;
    let reference = format!("{registry}/{ORGANISATION}/{name}:{}", built.tag);
    command
        .args(["xpkg", "push", "--package-files"])
        .arg(listed(&built.files))
        .args([
            concat!(
                "--oci-annotation=org.opencontainers.image.source=",
                env!("CARGO_PKG_REPOSITORY")
            ),
            concat!(
                "--oci-annotation=org.opencontainers.image.licenses=",
                env!("CARGO_PKG_LICENSE")
            ),
            &format!(
                "--oci-annotation=org.opencontainers.image.version={}",
                built.tag
            ),
            &reference,
        ]);
    output(&mut command)?;
    Ok(reference)
}

/// The files in the form that the CLI expects. The CLI makes an index of more than one file.
fn listed(files: &[PathBuf]) -> OsString {
    let files: Vec<&std::ffi::OsStr> = files.iter().map(|file| file.as_os_str()).collect();
    files.join(std::ffi::OsStr::new(","))
}

#[cfg(test)]
mod tests {
    use local_cluster::progress::Progress;
    use serde_json::Value;

    use super::*;
    use crate::package::contents::PACKAGES;
    use crate::package::image;
    use crate::package::platform::Platform;
    use crate::package::test_registry::Registry;

    /// The "programs" are only text: the test checks which image a machine gets.
    #[test]
    fn every_machine_pulls_the_package_of_its_own_platform() {
        let progress = &Progress::to_stderr();
        let cli = crate::target::crossplane(progress).unwrap();
        let crane = crate::target::crane(progress).unwrap();
        let folder = std::env::temp_dir().join(format!("push-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let binary = folder.join("program");
        std::fs::write(&binary, "not really one").unwrap();
        let manifests = crate::root().join("package/function");
        let mut files = Vec::new();
        for platform in [Platform::Amd64, Platform::Arm64] {
            let archive = folder.join(format!("{}.tar", platform.architecture()));
            image::write(&binary, "program", platform, &archive).unwrap();
            let file = archive.with_extension("xpkg");
            let build = Command::new(&cli)
                .args(["xpkg", "build", "--examples-root=/nowhere"])
                .arg("--package-root")
                .arg(&manifests)
                .arg("--embed-runtime-image-tarball")
                .arg(&archive)
                .arg("--package-file")
                .arg(&file)
                .output()
                .unwrap();
            assert!(build.status.success(), "{build:?}");
            files.push(file);
        }
        let registry = Registry::serve(&crane);
        let package = PACKAGES.iter().find(|one| one.kind == "function").unwrap();
        let built = Built {
            package,
            files,
            tag: "v0.1.0".into(),
            missing: Vec::new(),
        };

        let reference = push(Command::new(&cli), &registry.address, &built).unwrap();

        let manifest = output(Command::new(&crane).args(["manifest", &reference])).unwrap();
        let index: Value = serde_json::from_str(&manifest).unwrap();
        let platforms = index["manifests"].as_array().unwrap().iter();
        let platforms: Vec<&Value> = platforms
            .map(|one| &one["platform"]["architecture"])
            .collect();
        assert_eq!(platforms, ["amd64", "arm64"]);
        let mut config = Command::new(&crane);
        config.args(["config", "--platform=linux/arm64", &reference]);
        let config: Value = serde_json::from_str(&output(&mut config).unwrap()).unwrap();
        assert_eq!(config["architecture"], "arm64");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
