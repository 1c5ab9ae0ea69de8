//! `cargo xtask package`: the three Crossplane packages.
//!
//! A package's tag is its version with a digest of what went into it: the same
//! content keeps its tag, so installing again changes nothing.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand};
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, mirror};

use crate::dependencies::{self, Served};
use crate::image;
use crate::target::Target;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The organisation in package references and, by Crossplane's rule, in the
/// names of installed packages.
const ORGANISATION: &str = "acme";
/// The registry in committed manifests; replaced by the one that is pushed to.
const COMMITTED_REGISTRY: &str = "registry.platform.acme.io";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build the packages into the target folder
    Build,
    /// Build, push and install them
    Install {
        #[command(flatten)]
        target: Target,
    },
    /// Build somebody else's providers from pinned source, and push them to a local
    /// cluster's registry
    Mirror {
        /// Their repositories, such as upbound/provider-aws-ec2
        #[arg(required = true)]
        repositories: Vec<String>,
        /// Name of the local cluster
        #[arg(long, default_value = "demo")]
        name: String,
    },
}

/// A package: its kind, as the crossplane CLI names it, and its folder below
/// `package/`, with the program that it runs.
struct Package {
    kind: &'static str,
    name: &'static str,
    program: Option<&'static str>,
}

/// In the order in which they are installed.
const PACKAGES: [Package; 3] = [
    Package {
        kind: "provider",
        name: "provider-gpu-spot",
        program: Some("provider-gpu-spot"),
    },
    Package {
        kind: "function",
        name: "function-gpu-workspace",
        program: Some("function-gpu-workspace"),
    },
    Package {
        kind: "configuration",
        name: "configuration-gpu-workspaces",
        program: None,
    },
];

/// A package file and the tag of its content.
struct Built {
    package: &'static Package,
    file: PathBuf,
    tag: String,
    /// Dependencies that the registry lacks and the file leaves out.
    missing: Vec<String>,
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let mut progress = Progress::to_stderr();
    let outcome = match arguments.action {
        Action::Build => crate::target::crossplane()
            .and_then(|cli| build(&cli, COMMITTED_REGISTRY, |_| true, &mut progress))
            .map(|built| built.iter().for_each(|b| println!("{}", b.file.display()))),
        Action::Install { target } => target
            .resolve()
            .and_then(|target| install(&target, &mut progress)),
        Action::Mirror { repositories, name } => mirror_all(&repositories, &name, &mut progress),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds, pushes and installs, and waits until Crossplane calls each healthy.
pub(crate) fn install(target: &crate::target::Resolved, progress: &mut Progress) -> Outcome<()> {
    let crane = crate::target::crane(progress)?;
    let holds = |repository: &str| dependencies::holds(&crane, &target.registry, repository);
    for built in build(&target.crossplane, &target.registry, holds, progress)? {
        let name = built.package.name;
        let reference = format!("{}/{ORGANISATION}/{name}:{}", target.registry, built.tag);
        let step = progress.begin(&format!("install {name}"));
        let mut push = target.command(&target.crossplane);
        push.args(["xpkg", "push", "-f"])
            .arg(&built.file)
            .arg(&reference);
        output(&mut push)?;
        put(target, built.package, &reference)?;
        step.end(&built.tag);
        for repository in &built.missing {
            let mirror = target.mirroring(repository);
            progress.note(&dependencies::note(&target.registry, repository, &mirror));
        }
    }
    Ok(())
}

fn mirror_all(repositories: &[String], name: &str, progress: &mut Progress) -> Outcome<()> {
    let (cluster, cache) = (Cluster::open(name)?, Cache::from_environment()?);
    for repository in repositories {
        let provider = mirror::find(repository)?;
        println!("{}", mirror::mirror(&cache, &cluster, provider, progress)?);
    }
    Ok(())
}

/// Installs a package by Crossplane's own command, or moves an installed one to
/// another reference.
fn put(target: &crate::target::Resolved, package: &Package, reference: &str) -> Outcome<()> {
    let object = format!(
        "{}.pkg.crossplane.io/{ORGANISATION}-{}",
        package.kind, package.name
    );
    let mut existing = target.kubectl();
    existing.args([
        "get",
        &object,
        "--ignore-not-found",
        "-o",
        "jsonpath={.spec.package}",
    ]);
    let installed = output(&mut existing)?;
    if installed.is_empty() {
        let mut install = target.command(&target.crossplane);
        install.args(["xpkg", "install", package.kind, reference]);
        output(&mut install)?;
    } else if installed != reference {
        let patch = serde_json::json!({"spec": {"package": reference}}).to_string();
        output(
            target
                .kubectl()
                .args(["patch", &object, "--type=merge", "-p", &patch]),
        )?;
    }
    // A moved package is healthy, by its old revision, until the new one is
    // looked at: the revision is waited for first.
    let wanted = format!("jsonpath={{.status.resolvedPackage}}={reference}");
    for condition in [wanted.as_str(), "condition=Installed", "condition=Healthy"] {
        let mut wait = target.kubectl();
        wait.args(["wait", &object, "--timeout=120s"])
            .arg(format!("--for={condition}"));
        if let Err(error) = output(&mut wait) {
            let conditions = output(target.kubectl().args([
                "get",
                &object,
                "-o",
                "jsonpath={range .status.conditions[*]}{.type}={.status} {.reason} {.message}{\"\\n\"}{end}",
            ]))?;
            return Err(format!("{object}: {error}\n{conditions}").into());
        }
    }
    Ok(())
}

/// Where a statically linked program of ours lies after a build.
pub(crate) fn program(name: &str) -> PathBuf {
    programs().join("packages").join(format!("{name}.stripped"))
}

fn build(
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
            let staged = stage(package, registry, &holds, &source)?;
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

/// What lies ready to be packed.
struct Staged {
    digests: String,
    missing: Vec<String>,
}

/// Copies a package's manifests together, without the dependencies that the
/// registry lacks.
fn stage(
    package: &Package,
    registry: &str,
    holds: impl Fn(&str) -> bool,
    to: &Path,
) -> Outcome<Staged> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let root = crate::root();
    copy(&root.join("package").join(package.kind), to, registry)?;
    if package.kind == "configuration" {
        for folder in ["xrds", "compositions"] {
            copy(&root.join(folder), &to.join(folder), registry)?;
        }
    }
    let manifest = to.join("crossplane.yaml");
    let text = fs::read_to_string(&manifest)?;
    let Served {
        manifest: text,
        missing,
    } = dependencies::served(&text, registry, ORGANISATION, holds)?;
    fs::write(&manifest, text)?;
    Ok(Staged {
        digests: digests(to)?,
        missing,
    })
}

/// The digests of all files below a folder, in the order of names.
fn digests(folder: &Path) -> Outcome<String> {
    let mut together = String::new();
    for path in sorted(folder)? {
        together.push_str(&if path.is_dir() {
            digests(&path)?
        } else {
            image::sha256(&fs::read(&path)?)
        });
    }
    Ok(together)
}

/// Copies manifests, with the registry in the place of the committed one.
pub(crate) fn copy(from: &Path, to: &Path, registry: &str) -> Outcome<()> {
    fs::create_dir_all(to)?;
    for path in sorted(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target, registry)?;
        } else if path.extension().is_some_and(|e| e == "yaml") {
            let text = fs::read_to_string(&path)?.replace(COMMITTED_REGISTRY, registry);
            fs::write(&target, text)?;
        }
    }
    Ok(())
}

fn sorted(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    Ok(entries)
}

/// Runs a command and answers what it printed.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let ran = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(format!("{command:?}: {}: {}", ran.status, said.trim()).into())
}
