//! Package files, from the programs and the staged manifests.
//!
//! The same sources give the same bytes. A development package's tag is its version with
//! a digest of what went into it: the same content keeps its tag, so installing again
//! changes nothing.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::progress::Progress;

use super::compile::{Profile, Source};
use super::contents::{PACKAGES, Package};
use super::platform::Platform;
use super::stage::{Staged, stage};
use super::{image, sbom};
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What to build, and for whom.
pub(super) struct Request<'a> {
    pub(super) profile: Profile,
    pub(super) platforms: &'a [Platform],
    /// The registry in which the packages are looked for.
    pub(super) registry: &'a str,
    /// Whether that registry has other people's repositories.
    pub(super) holds: &'a dyn Fn(&str) -> bool,
}

/// A package's files and the tag of its content.
pub(super) struct Built {
    pub(super) package: &'static Package,
    /// One for each platform; one for all where no program is in it.
    pub(super) files: Vec<PathBuf>,
    pub(super) tag: String,
    /// Dependencies that the registry lacks and the files leave out.
    pub(super) missing: Vec<String>,
}

/// A package's program, ready to be put into an image.
struct Runtime {
    platform: Platform,
    archive: PathBuf,
    /// The digest of its image.
    digest: String,
}

/// Where a statically linked program of ours lies after a build.
pub(crate) fn program(name: &str) -> PathBuf {
    let folder = Source::here().packages(Profile::Dev);
    folder.join(format!("{name}.stripped"))
}

/// Builds every package of a checkout.
pub(super) fn build(
    cli: &Path,
    source: &Source,
    request: &Request<'_>,
    progress: &Progress,
) -> Outcome<Vec<Built>> {
    let to = source.packages(request.profile);
    fs::create_dir_all(&to)?;
    let mut programs = Vec::new();
    for platform in request.platforms {
        let folder = source.compile(request.profile, *platform, progress)?;
        programs.push((*platform, folder));
    }
    let mut packages = Vec::new();
    for package in PACKAGES {
        let folder = to.join(package.name);
        let staged = stage(package, &source.root, request, &folder)?;
        let mut runtimes = Vec::new();
        for (platform, programs) in &programs {
            if let Some(program) = package.program {
                runtimes.push(runtime(program, *platform, programs, request, &to)?);
                sbom::write(
                    source,
                    package,
                    *platform,
                    &file(&to, package, request, *platform, "cdx.json"),
                )?;
            }
        }
        packages.push(pack(cli, package, request, &staged, &runtimes, &to)?);
    }
    Ok(packages)
}

/// A program without what only debuggers read, in an image of its own. The build id goes
/// as well: it stands for debug information too, in which there are paths.
fn runtime(
    program: &str,
    platform: Platform,
    programs: &Path,
    request: &Request<'_>,
    to: &Path,
) -> Outcome<Runtime> {
    let suffix = suffix(request, platform);
    let stripped = to.join(format!("{program}{suffix}.stripped"));
    output(
        Command::new(platform.tool("strip"))
            .arg("--remove-section=.note.gnu.build-id")
            .arg("-o")
            .arg(&stripped)
            .arg(programs.join(program)),
    )?;
    let archive = to.join(format!("{program}{suffix}.tar"));
    let digest = image::write(&stripped, program, platform, &archive)?;
    Ok(Runtime {
        platform,
        archive,
        digest,
    })
}

fn pack(
    cli: &Path,
    package: &'static Package,
    request: &Request<'_>,
    staged: &Staged,
    runtimes: &[Runtime],
    to: &Path,
) -> Outcome<Built> {
    let mut digests = staged.digests.clone();
    let mut files = Vec::new();
    for runtime in runtimes {
        digests.push_str(&runtime.digest);
        let file = file(to, package, request, runtime.platform, "xpkg");
        xpkg(
            cli,
            &staged.folder,
            &staged.examples,
            Some(&runtime.archive),
            &file,
        )?;
        files.push(file);
    }
    if runtimes.is_empty() {
        let file = to.join(format!("{}.xpkg", package.name));
        xpkg(cli, &staged.folder, &staged.examples, None, &file)?;
        files.push(file);
    }
    let version = env!("CARGO_PKG_VERSION");
    let digest = image::sha256(digests.as_bytes());
    Ok(Built {
        package,
        files,
        tag: match request.profile {
            Profile::Dev => format!("v{version}-dev.{}", &digest[..12]),
            Profile::Release => format!("v{version}"),
        },
        missing: staged.missing.clone(),
    })
}

/// Examples are always named: the CLI would take a folder `examples` of whoever calls.
fn xpkg(
    cli: &Path,
    folder: &Path,
    examples: &Path,
    runtime: Option<&PathBuf>,
    file: &Path,
) -> Outcome<()> {
    if file.exists() {
        fs::remove_file(file)?;
    }
    let mut command = Command::new(cli);
    command
        .args(["xpkg", "build", "--package-root"])
        .arg(folder)
        .arg("--examples-root")
        .arg(examples)
        .arg("--package-file")
        .arg(file);
    if let Some(archive) = runtime {
        command.arg("--embed-runtime-image-tarball").arg(archive);
    }
    output(&mut command)?;
    Ok(())
}

fn file(
    to: &Path,
    package: &Package,
    request: &Request<'_>,
    platform: Platform,
    extension: &str,
) -> PathBuf {
    let suffix = suffix(request, platform);
    to.join(format!("{}{suffix}.{extension}", package.name))
}

/// Development packages for this machine are found under their plain names.
fn suffix(request: &Request<'_>, platform: Platform) -> String {
    if request.profile == Profile::Dev && platform == Platform::host() {
        String::new()
    } else {
        format!("-{}", platform.architecture())
    }
}
