//! Builds each pinned binary once, or fetches its official release.
//!
//! A built binary is in `<cache>/binaries/<name>-<key>/<name>`. The key is a hash of the pins (see
//! [`pins`](crate::pins)), so only changed pins cause another build. Programs of one fetched
//! release share a folder (see [`releases`](crate::releases)).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cache::{self, Cache};
use crate::command;
use crate::durations::Usual;
use crate::modules::{self, Binary, MODULES, Module};
use crate::pins::Pins;
use crate::progress::{Progress, Step};
use crate::releases::{self, Origin, Release};
use crate::sources;

/// What can go wrong while building.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table of modules does not know the name.
    #[error("no module builds a binary named `{0}`: see modules::MODULES in tests/cluster")]
    Unknown(String),
    /// The cache folder or the pins cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// A release cannot be fetched.
    #[error(transparent)]
    Release(#[from] releases::Error),
    /// The sources of a program cannot be prepared.
    #[error("build {name}: {source}")]
    Sources {
        /// The binary.
        name: String,
        /// The cause.
        source: sources::Error,
    },
    /// The `go` command failed.
    #[error("build {name}: {source}")]
    Build {
        /// The binary.
        name: String,
        /// The error of Go.
        source: command::Error,
    },
}

/// The paths of binaries, by name.
#[derive(Debug, Clone, Default)]
pub struct Binaries {
    paths: BTreeMap<String, PathBuf>,
}

impl Binaries {
    /// The path of one binary.
    pub fn path(&self, name: &str) -> Result<&Path, Error> {
        self.paths
            .get(name)
            .map(PathBuf::as_path)
            .ok_or_else(|| Error::Unknown(name.to_owned()))
    }

    /// All names with their paths, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.paths
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }
}

/// Builds or fetches the binaries that are missing, and returns the paths of all. A second call at
/// the same time waits for the first one.
pub fn ensure(cache: &Cache, names: &[&str], progress: &Progress) -> Result<Binaries, Error> {
    let origin = Origin::from_environment()?;
    let mut binaries = Binaries::default();
    let mut built = Vec::new();
    for name in names {
        match origin.release_of(name) {
            Some(release) => {
                ensure_release(cache, &origin, release, progress)?;
                let path = release.entry(cache).join(name);
                binaries.paths.insert((*name).to_owned(), path);
            }
            None => built.push(*name),
        }
    }
    let go = go_version()?;
    for (module, wanted) in by_module(&built)? {
        let pins = Pins::read(module)?;
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|binary| Wanted {
                binary,
                entry: cache.entry("binaries", binary.name, &pins.key(module, binary, &go)),
            })
            .collect();
        ensure_module(cache, module, &pins, &wanted, progress)?;
        for Wanted { binary, entry } in wanted {
            let path = entry.join(binary.name);
            binaries.paths.insert(binary.name.to_owned(), path);
        }
    }
    Ok(binaries)
}

/// The names of the binaries that are neither built nor fetched yet.
pub fn missing(cache: &Cache, names: &[&str]) -> Result<Vec<String>, Error> {
    let origin = Origin::from_environment()?;
    let go = go_version()?;
    let mut missing = Vec::new();
    for name in names {
        let entry = if let Some(release) = origin.release_of(name) {
            release.entry(cache)
        } else {
            let (module, binary) = find(name)?;
            let key = Pins::read(module)?.key(module, binary, &go);
            cache.entry("binaries", name, &key)
        };
        if !entry.exists() {
            missing.push((*name).to_owned());
        }
    }
    Ok(missing)
}

/// Fetches a release unless the cache has it.
fn ensure_release(
    cache: &Cache,
    origin: &Origin,
    release: &Release,
    progress: &Progress,
) -> Result<(), Error> {
    let entry = release.entry(cache);
    if entry.exists() {
        return Ok(());
    }
    let names: Vec<_> = release.programs.iter().map(|(name, _)| *name).collect();
    let step = progress.begin(&format!("release of {}", names.join(", ")));
    let _lock = cache.lock("binaries", |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    if entry.exists() {
        step.end("cached");
        return Ok(());
    }
    cache::publish(&entry, |folder| release.fetch(origin, folder, &step))?;
    step.end("fetched");
    Ok(())
}

/// A program that the caller asked for.
struct Wanted {
    binary: &'static Binary,
    /// Its place in the cache, whether or not it is there yet.
    entry: PathBuf,
}

fn find(name: &str) -> Result<(&'static Module, &'static Binary), Error> {
    modules::find(name).ok_or_else(|| Error::Unknown(name.to_owned()))
}

/// Groups programs by module, in the order of the table of modules.
fn by_module(names: &[&str]) -> Result<Vec<(&'static Module, Vec<&'static Binary>)>, Error> {
    for name in names {
        find(name)?;
    }
    let asked = |binary: &&Binary| names.contains(&binary.name);
    let programs = |module: &'static Module| module.binaries.iter().filter(asked).collect();
    let modules = MODULES.iter().map(|module| (module, programs(module)));
    Ok(modules
        .filter(|(_, programs): &(_, Vec<_>)| !programs.is_empty())
        .collect())
}

fn ensure_module(
    cache: &Cache,
    module: &Module,
    pins: &Pins,
    wanted: &[Wanted],
    progress: &Progress,
) -> Result<(), Error> {
    let is_missing = |wanted: &&Wanted| !wanted.entry.exists();
    if !wanted.iter().any(|wanted| is_missing(&wanted)) {
        return Ok(());
    }
    let step = progress.begin(&title(wanted));
    // One lock for all builds: two parallel Go builds take longer than one after the other.
    let _lock = cache.lock("binaries", |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    let missing: Vec<_> = wanted.iter().filter(is_missing).collect();
    if missing.is_empty() {
        step.end("cached");
        return Ok(());
    }
    let build = Build {
        module,
        pins,
        missing: &missing,
    };
    let usual = Usual::of(cache, &build.name(), Duration::from_secs(module.typical));
    step.expect(usual.duration());
    build.run(cache, &step)?;
    usual.record(step.elapsed());
    step.end("built");
    Ok(())
}

fn title(wanted: &[Wanted]) -> String {
    match wanted {
        [one] => format!("program {}", one.binary.name),
        [first, ..] => format!(
            "{} and {} other programs",
            first.binary.name,
            wanted.len() - 1
        ),
        [] => String::new(),
    }
}

/// One call of Go. It compiles shared packages once, and links several programs at a time.
struct Build<'a> {
    module: &'a Module,
    pins: &'a Pins,
    missing: &'a [&'a Wanted],
}

impl Build<'_> {
    /// The name of the build's log and of the record of its duration.
    fn name(&self) -> String {
        match self.missing {
            [one] => format!("build-{}", one.binary.name),
            _ => format!("build-{}", self.module.folder),
        }
    }

    fn run(&self, cache: &Cache, step: &Step) -> Result<(), Error> {
        let name = self.name();
        let log = cache.log(&name);
        cache::create_folder(&cache.root().join("logs"))?;
        let scratch = cache.entry("binaries", &name, "unfinished");
        cache::remove_folder(&scratch)?;
        cache::create_folder(&scratch)?;
        let packages = self.missing.iter().map(|wanted| wanted.binary.package);
        let sources = self.sources(&scratch)?;
        step.follow(packages_compiled(self.count(&sources)?, log.clone()));
        let mut go = self.go("build");
        go.args(&sources);
        for flags in modules::GCFLAGS {
            go.arg(format!("-gcflags={flags}"));
        }
        // With `-v`, Go prints a line per compiled package; `packages_compiled` counts these lines.
        go.args(["-v", "-trimpath", "-mod=readonly", "-ldflags"])
            .arg(self.pins.ldflags(self.module))
            .arg("-o")
            // The slash at the end makes Go write into a folder, even if there is only one program.
            .arg(scratch.join(""))
            .args(packages);
        command::logged(&mut go, &log).map_err(failed(&name))?;
        for wanted in self.missing {
            let built = scratch.join(file_name(wanted.binary.package, self.module.folder));
            cache::publish(&wanted.entry, |folder| {
                let to = folder.join(wanted.binary.name);
                std::fs::rename(&built, &to).map_err(cache::Error::io("publish", &to))
            })?;
        }
        Ok(cache::remove_folder(&scratch)?)
    }

    /// The arguments that make Go read narrowed sources.
    fn sources(&self, scratch: &Path) -> Result<Vec<String>, Error> {
        let narrowed = self.module.narrowed;
        if narrowed.is_empty() {
            return Ok(Vec::new());
        }
        let modules = sources::narrow(&self.pins.folder, narrowed, scratch);
        let modules = modules.map_err(unprepared(&self.name()))?;
        Ok(vec![format!("-modfile={}", modules.display())])
    }

    /// The number of packages that the programs consist of.
    fn count(&self, sources: &[String]) -> Result<usize, Error> {
        let mut go = self.go("list");
        go.args(sources)
            .args(["-deps", "-mod=readonly"])
            .args(self.missing.iter().map(|wanted| wanted.binary.package));
        let listed = command::output(&mut go).map_err(failed(&self.name()))?;
        Ok(listed.lines().count())
    }

    fn go(&self, verb: &str) -> Command {
        let mut go = sources::go(&self.pins.folder);
        // A static binary also runs in an image without other files, and needs no C compiler.
        go.env("CGO_ENABLED", "0")
            // With less garbage collection the compiler is a tenth faster and takes a gigabyte more
            // memory.
            .env("GOGC", "400")
            .arg(verb);
        if !self.module.tags.is_empty() {
            go.args(["-tags", self.module.tags]);
        }
        go
    }
}

/// The progress of a build, from its log, which omits packages from Go's own cache.
fn packages_compiled(all: usize, log: PathBuf) -> impl Fn() -> Option<String> + Send {
    move || {
        let text = std::fs::read_to_string(&log).ok()?;
        let compiled = text.lines().filter(|line| !line.starts_with("go:")).count();
        Some(format!("{compiled} of {all} packages"))
    }
}

/// The file that Go links a package into: the last element of the path that is not a version.
fn file_name<'a>(package: &'a str, folder: &'a str) -> &'a str {
    let is_version = |name: &str| {
        name.strip_prefix('v')
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let mut names = package.rsplit('/').filter(|name| !is_version(name));
    match names.next() {
        Some(".") | None => folder,
        Some(name) => name,
    }
}

/// The version of a program, such as `v1.37.0`.
pub fn version(name: &str) -> Result<String, Error> {
    let (module, binary) = find(name)?;
    Ok(Pins::read(module)?.version_of(binary).to_owned())
}

/// The folder of a binary's source. Go downloads the source if it is not there.
pub fn source(name: &str) -> Result<PathBuf, Error> {
    let (module, binary) = find(name)?;
    let pins = Pins::read(module)?;
    sources::folder(&pins.folder, binary.source).map_err(unprepared(name))
}

/// Go's version, such as `go1.26.8`.
pub(crate) fn go_version() -> Result<String, Error> {
    let mut go = Command::new("go");
    go.env("GOTOOLCHAIN", "local").args(["env", "GOVERSION"]);
    let version = command::output(&mut go).map_err(failed("go"))?;
    Ok(version.trim().to_owned())
}

fn failed(name: &str) -> impl Fn(command::Error) -> Error {
    let name = name.to_owned();
    move |source| Error::Build {
        name: name.clone(),
        source,
    }
}

fn unprepared(name: &str) -> impl Fn(sources::Error) -> Error {
    let name = name.to_owned();
    move |source| Error::Sources {
        name: name.clone(),
        source,
    }
}

#[cfg(test)]
#[path = "binaries_tests.rs"]
mod tests;
