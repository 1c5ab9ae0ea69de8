//! Builds package files from the programs and the staged manifests.
//!
//! The same sources give the same bytes. The tag of a development package is its version with a
//! digest of its contents. Unchanged contents keep their tag, so a second installation changes
//! nothing.

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

/// What to build, and for which platforms and registry.
pub(super) struct Request<'a> {
    pub(super) profile: Profile,
    pub(super) platforms: &'a [Platform],
    /// The registry that the packages name for each other.
    pub(super) registry: &'a str,
    /// Whether that registry has a given third-party repository.
    pub(super) holds: &'a dyn Fn(&str) -> bool,
}

/// A package's files, and the tag for its contents.
pub(super) struct Built {
    pub(super) package: &'static Package,
    /// One file per platform; a single file if the package has no program.
    pub(super) files: Vec<PathBuf>,
    pub(super) tag: String,
    /// Dependencies that the registry lacks. The files leave them out.
    pub(super) missing: Vec<String>,
}

/// A package's program in the archive of an image.
struct Runtime {
    platform: Platform,
    archive: PathBuf,
    /// The digest of its image.
    digest: String,
}

/// The path of a statically linked program after a development build.
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
    let step = progress.begin("packages");
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
    step.end("built");
    Ok(packages)
}

/// Strips a program and puts it into an image of its own. The build id is removed as well: it also
/// depends on debug information, which contains paths of this machine.
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
            Profile::Release | Profile::Small => format!("v{version}"),
        },
        missing: staged.missing.clone(),
    })
}

/// Builds one package file. The folder of examples is always given; otherwise the CLI takes a
/// folder `examples` of the current folder.
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

/// The suffix of a file's name. Development packages for this machine have none.
fn suffix(request: &Request<'_>, platform: Platform) -> String {
    if request.profile == Profile::Dev && platform == Platform::host() {
        String::new()
    } else {
        format!("-{}", platform.architecture())
    }
}
