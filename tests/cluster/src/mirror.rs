//! Copies a third-party provider package into the cluster's registry, as a platform's mirror would.
//! The package is built from pinned source, because the cluster reaches no other registry.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries;
use crate::cache::{self, Cache, key};
use crate::cluster::{self, Cluster};
use crate::command;
use crate::images;
use crate::modules::{self, Binary, Module};
use crate::pins::Pins;
use crate::progress::Progress;

/// The version of the recipe. Raise it with each change of how the package is made.
const RECIPE: &str = "1";

/// A provider that can be mirrored.
#[derive(Debug)]
pub struct Provider {
    /// Its repository: organisation and name, without a registry.
    pub repository: &'static str,
    /// The name of its program in the table of modules.
    binary: &'static str,
    /// The kinds that the package contains: names of files of the source's `package/crds`. The
    /// source has hundreds of kinds, and each kind takes memory of the API server.
    kinds: &'static [&'static str],
}

/// Every provider that can be mirrored.
pub static PROVIDERS: &[Provider] = &[Provider {
    repository: "upbound/provider-aws-ec2",
    binary: "provider-aws-ec2",
    kinds: &[
        "aws.m.upbound.io_clusterproviderconfigs",
        "aws.m.upbound.io_providerconfigs",
        "aws.m.upbound.io_providerconfigusages",
        "aws.upbound.io_providerconfigs",
        "aws.upbound.io_providerconfigusages",
        "ec2.aws.m.upbound.io_ebsvolumes",
        "ec2.aws.m.upbound.io_instances",
        "ec2.aws.m.upbound.io_instancestates",
        "ec2.aws.m.upbound.io_securitygrouprules",
        "ec2.aws.m.upbound.io_securitygroups",
        "ec2.aws.m.upbound.io_volumeattachments",
    ],
}];

/// What can go wrong while a package is mirrored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No provider has this repository.
    #[error("no provider {0} to mirror: see mirror::PROVIDERS in tests/cluster")]
    Unknown(String),
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The program cannot be built.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// The cluster lacks a program.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// A program failed.
    #[error(transparent)]
    Command(#[from] command::Error),
}

/// Finds the provider with that repository.
pub fn find(repository: &str) -> Result<&'static Provider, Error> {
    PROVIDERS
        .iter()
        .find(|provider| provider.repository == repository)
        .ok_or_else(|| Error::Unknown(repository.to_owned()))
}

impl Provider {
    /// The manifests of its kinds. The source is downloaded if necessary; nothing is built.
    pub fn kinds(&self) -> Result<Vec<PathBuf>, Error> {
        let crds = binaries::source(self.binary)?.join("package/crds");
        let file = |kind| crds.join(format!("{kind}.yaml"));
        Ok(self.kinds.iter().map(file).collect())
    }

    fn pinned(&self) -> Result<(&'static Module, &'static Binary), Error> {
        let unknown = || binaries::Error::Unknown(self.binary.to_owned());
        Ok(modules::find(self.binary).ok_or_else(unknown)?)
    }
}

/// Builds the provider and its package if necessary, and pushes the package. Returns its reference
/// in the cluster's registry.
pub fn mirror(
    cache: &Cache,
    cluster: &Cluster,
    provider: &Provider,
    progress: &Progress,
) -> Result<String, Error> {
    let (module, program) = provider.pinned()?;
    let pins = Pins::read(module)?;
    let version = pins.version_of(program);
    let target = Target {
        repository: format!("{}/{}", cluster.registry(), provider.repository),
        version,
        crane: cluster.program("crane")?,
        crossplane: cluster.program("crossplane")?,
    };
    let binaries = binaries::ensure(cache, &[provider.binary], progress)?;
    let binary = binaries.path(provider.binary)?;
    let step = progress.begin(&format!("package {}", provider.repository));
    let file = ensure_package(cache, provider, &target, binary, &pins)?;
    let reference = target.reference();
    let mut push = Command::new(&target.crossplane);
    push.args(["xpkg", "push", "-f"]).arg(file).arg(&reference);
    command::output(&mut push)?;
    step.end("pushed");
    Ok(reference)
}

/// The destination of a package, and the programs that build and push it.
struct Target<'a> {
    repository: String,
    version: &'a str,
    crane: PathBuf,
    crossplane: PathBuf,
}

impl Target<'_> {
    fn reference(&self) -> String {
        format!("{}:{}", self.repository, self.version)
    }
}

fn ensure_package(
    cache: &Cache,
    provider: &Provider,
    target: &Target<'_>,
    binary: &Path,
    pins: &Pins,
) -> Result<PathBuf, Error> {
    let meta = cache::read(&pins.folder.join("package/crossplane.yaml"))?;
    let kinds = provider.kinds.join(" ");
    let key = key([
        ("binary", binary.as_os_str().as_encoded_bytes()),
        ("meta", meta.as_bytes()),
        ("kinds", kinds.as_bytes()),
        ("recipe", RECIPE.as_bytes()),
    ]);
    let entry = cache.entry("packages", provider.binary, &key);
    let _lock = cache.lock("packages", |_| {})?;
    if !entry.exists() {
        cache::publish(&entry, |folder| {
            build(folder, provider, target, binary, &meta)
        })?;
    }
    Ok(entry.join("package.xpkg"))
}

fn build(
    folder: &Path,
    provider: &Provider,
    target: &Target<'_>,
    binary: &Path,
    meta: &str,
) -> Result<(), Error> {
    let scratch = folder.join("scratch");
    let root = scratch.join("package");
    cache::create_folder(&root.join("crds"))?;
    cache::write(&root.join("crossplane.yaml"), meta)?;
    for kind in provider.kinds()? {
        let name = kind.file_name().unwrap_or_default();
        cache::write(&root.join("crds").join(name), cache::read(&kind)?)?;
    }
    let archive = runtime_image(&scratch, provider, target, binary)?;
    let mut xpkg = Command::new(&target.crossplane);
    xpkg.args(["xpkg", "build", "-f"])
        .arg(&root)
        .arg("--embed-runtime-image-tarball")
        .arg(archive)
        .arg("-o")
        .arg(folder.join("package.xpkg"));
    command::output(&mut xpkg)?;
    Ok(cache::remove_folder(&scratch)?)
}

/// Builds the provider's image and returns its archive. crane builds images only in a registry, so
/// the image is pushed to the cluster's registry first and pulled from there.
fn runtime_image(
    scratch: &Path,
    provider: &Provider,
    target: &Target<'_>,
    binary: &Path,
) -> Result<PathBuf, Error> {
    let layer = scratch.join("layer.tar.gz");
    images::pack_binary(binary, &layer)?;
    let reference = format!("{}-runtime:{}", target.repository, target.version);
    images::push(
        &target.crane,
        &images::Image {
            reference: &reference,
            layers: &[layer],
            entrypoint: &format!("/{}", provider.binary),
            environment: &[],
            user: None,
        },
    )?;
    let archive = scratch.join("image.tar");
    let mut pull = Command::new(&target.crane);
    pull.args(["pull", &reference]).arg(&archive);
    command::output(&mut pull)?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_its_pins_and_its_package() {
        for provider in PROVIDERS {
            let module = provider.pinned().unwrap().0;
            let meta = Pins::read(module).unwrap().folder;
            let meta = meta.join("package/crossplane.yaml");
            assert!(cache::read(&meta).unwrap().contains(provider.binary));
            assert!(!module.in_every_cluster, "{} takes long", provider.binary);
        }
    }

    #[test]
    fn an_unknown_provider_is_named() {
        let error = find("upbound/provider-aws-s3").unwrap_err().to_string();
        assert!(error.contains("upbound/provider-aws-s3"), "{error}");
    }
}
