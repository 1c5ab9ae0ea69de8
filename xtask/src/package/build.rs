//! Package files, from the programs and the staged manifests.
//!
//! A package's tag is its version with a digest of what went into it: the same
//! content keeps its tag, so installing again changes nothing.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::progress::Progress;

use super::contents::{PACKAGES, Package};
use super::image;
use super::stage::{Staged, stage};
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A package file and the tag of its content.
pub(super) struct Built {
    pub(super) package: &'static Package,
    pub(super) file: PathBuf,
    pub(super) tag: String,
    /// Dependencies that the registry lacks and the file leaves out.
    pub(super) missing: Vec<String>,
}

/// Where a statically linked program of ours lies after a build.
pub(crate) fn program(name: &str) -> PathBuf {
    programs().join("packages").join(format!("{name}.stripped"))
}

/// Builds every package, for a registry that `holds` other people's repositories.
pub(super) fn build(
    cli: &Path,
    registry: &str,
    holds: impl Fn(&str) -> bool,
    progress: &mut Progress,
) -> Outcome<Vec<Built>> {
    let step = progress.begin("compile function and provider, linked statically");
    let programs = compile()?;
    step.end("");
    let staging = programs.join("packages");
    fs::create_dir_all(&staging)?;
    PACKAGES
        .iter()
        .map(|package| {
            let source = staging.join(package.name);
            let staged = stage(package, &crate::root(), registry, &holds, &source)?;
            build_one(cli, package, &source, staged, &programs)
        })
        .collect()
}

/// Always the whole workspace: another set of packages would unify other
/// features and compile the AWS SDK again.
fn compile() -> Outcome<PathBuf> {
    let root = crate::root();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(&root)
        .env("RUSTC_WORKSPACE_WRAPPER", root.join("xtask/static-rustc"))
        .args(["build", "--quiet", "--workspace"]);
    for program in PACKAGES.iter().filter_map(|p| p.program) {
        cargo.args(["--bin", program]);
    }
    output(&mut cargo)?;
    Ok(programs())
}

fn programs() -> PathBuf {
    let own = || crate::root().join("target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, PathBuf::from);
    target.join("debug")
}

fn build_one(
    cli: &Path,
    package: &'static Package,
    source: &Path,
    staged: Staged,
    programs: &Path,
) -> Outcome<Built> {
    let staging = programs.join("packages");
    let mut digests = staged.digests;
    let file = staging.join(format!("{}.xpkg", package.name));
    let mut xpkg = Command::new(cli);
    xpkg.args(["xpkg", "build", "-f"])
        .arg(source)
        .arg("-o")
        .arg(&file);
    if let Some(program) = package.program {
        let stripped = self::program(program);
        output(
            Command::new("strip")
                .arg("-o")
                .arg(&stripped)
                .arg(programs.join(program)),
        )?;
        let archive = staging.join(format!("{program}.tar"));
        digests.push_str(&image::write(&stripped, program, &archive)?);
        xpkg.arg("--embed-runtime-image-tarball").arg(&archive);
    }
    if file.exists() {
        fs::remove_file(&file)?;
    }
    output(&mut xpkg)?;
    let digest = image::sha256(digests.as_bytes());
    Ok(Built {
        package,
        file,
        tag: format!("v{}-dev.{}", env!("CARGO_PKG_VERSION"), &digest[..12]),
        missing: staged.missing,
    })
}
