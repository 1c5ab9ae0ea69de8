//! Builds package files from the programs and the staged manifests.
//!
//! The same sources give the same bytes. The tag of a development package is its version with a
//! digest of its contents. Unchanged contents keep their tag, so a second installation changes
//! nothing.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::cache::{self, Lock};
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

/// The packages of a checkout. While this value lives, no other process writes their files: a build
/// for another registry would replace them before they are read.
pub(super) struct Packages {
    pub(super) built: Vec<Built>,
    _alone: Lock,
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

/// Builds every package of a checkout. Waits while another process uses the files of an earlier
/// build.
pub(super) fn build(
    cli: &Path,
    source: &Source,
    request: &Request<'_>,
    progress: &Progress,
) -> Outcome<Packages> {
    let to = source.packages(request.profile);
    let mut programs = Vec::new();
    for platform in request.platforms {
        let folder = source.compile(request.profile, *platform, progress)?;
        programs.push((*platform, folder));
    }
    let step = progress.begin("packages");
    let alone = cache::lock(&to.join("lock"), |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    let mut built = Vec::new();
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
        built.push(pack(cli, package, request, &staged, &runtimes, &to)?);
    }
    step.end("built");
    Ok(Packages {
        built,
        _alone: alone,
    })
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
        xpkg(cli, staged, Some(runtime), &file)?;
        files.push(file);
    }
    if runtimes.is_empty() {
        let file = to.join(format!("{}.xpkg", package.name));
        xpkg(cli, staged, None, &file)?;
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

/// Builds one package file, unless the file of an earlier build has the same contents: compressing a
/// program takes seconds. The folder of examples is always given; otherwise the CLI takes a folder
/// `examples` of the current folder.
fn xpkg(cli: &Path, staged: &Staged, runtime: Option<&Runtime>, file: &Path) -> Outcome<()> {
    let key = key(cli, staged, runtime);
    // Written last, and removed first: a build that was interrupted leaves no key.
    let key_file = file.with_extension("key");
    let earlier = fs::read_to_string(&key_file).unwrap_or_default();
    if file.is_file() && earlier == key {
        return Ok(());
    }
    for old in [key_file.as_path(), file] {
        if old.exists() {
            fs::remove_file(old)?;
        }
    }
    let mut command = Command::new(cli);
    command
        .args(["xpkg", "build", "--package-root"])
        .arg(&staged.folder)
        .arg("--examples-root")
        .arg(&staged.examples)
        .arg("--package-file")
        .arg(file);
    if let Some(runtime) = runtime {
        command
            .arg("--embed-runtime-image-tarball")
            .arg(&runtime.archive);
    }
    output(&mut command)?;
    fs::write(key_file, key)?;
    Ok(())
}

/// The hash of everything that a package file depends on.
fn key(cli: &Path, staged: &Staged, runtime: Option<&Runtime>) -> String {
    let program = runtime.map_or("", |runtime| &runtime.digest);
    cache::key([
        ("cli", cli.as_os_str().as_encoded_bytes()),
        ("contents", staged.digests.as_bytes()),
        ("program", program.as_bytes()),
    ])
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

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(folder: &Path, digests: &str) -> Staged {
        Staged {
            folder: folder.join("staged"),
            examples: folder.join("examples"),
            digests: digests.into(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn an_old_package_is_never_taken_for_one_with_other_contents() {
        let folder = std::env::temp_dir().join(format!("packed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.xpkg");
        // A CLI that packs nothing shows whether it was called.
        let cli = Path::new("false");
        let old = staged(&folder, "old");
        let put = || {
            fs::write(&file, "packed").unwrap();
            fs::write(folder.join("a.key"), key(cli, &old, None)).unwrap();
        };
        put();
        xpkg(cli, &old, None, &file).unwrap();
        xpkg(cli, &staged(&folder, "new"), None, &file).unwrap_err();
        // The failed build left nothing that the next one would take.
        xpkg(cli, &old, None, &file).unwrap_err();
        put();
        fs::remove_file(&file).unwrap();
        xpkg(cli, &old, None, &file).unwrap_err();
        put();
        xpkg(Path::new("/bin/false"), &old, None, &file).unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
    }
}
