//! Builds the pinned binaries, once, or fetches their official releases.
//!
//! Each lands in `<cache>/binaries/<name>-<key>/<name>`; the key stands for its
//! pins (see [`pins`](crate::pins)), so it is built again only when they change. Programs
//! of one release share a folder (see [`releases`](crate::releases)).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::cache::{self, Cache};
use crate::command;
use crate::durations::Usual;
use crate::modules::{self, Binary, MODULES, Module};
use crate::pins::Pins;
use crate::progress::{Progress, Step};
use crate::releases::{self, Origin, Release};

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
    /// Go did not say where a module's source is.
    #[error("find the source of {module}: {source}")]
    Source {
        /// Which module.
        module: &'static str,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
    /// Go failed.
    #[error("build {name}: {source}")]
    Build {
        /// Which binary.
        name: String,
        /// What Go said.
        source: command::Error,
    },
}

/// Built binaries by name.
#[derive(Debug, Clone, Default)]
pub struct Binaries {
    paths: BTreeMap<String, PathBuf>,
}

impl Binaries {
    /// Where the binary is.
    pub fn path(&self, name: &str) -> Result<&Path, Error> {
        self.paths
            .get(name)
            .map(PathBuf::as_path)
            .ok_or_else(|| Error::Unknown(name.to_owned()))
    }

    /// Names with paths, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.paths
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }
}

/// Builds or fetches what is not there yet and returns where everything is. A second
/// call at the same time waits for the first.
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

/// Which of the names are neither built nor fetched yet.
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

/// Fetches a release unless it is there.
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

/// A program that the caller asks for.
struct Wanted {
    binary: &'static Binary,
    /// Where it is, or will be.
    entry: PathBuf,
}

fn find(name: &str) -> Result<(&'static Module, &'static Binary), Error> {
    modules::find(name).ok_or_else(|| Error::Unknown(name.to_owned()))
}

/// The programs of each module, in the table's order.
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
    // One lock for all: two Go builds at once take longer than one after the other.
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

/// One call of Go: it compiles what the programs share once, and links several at a time.
struct Build<'a> {
    module: &'a Module,
    pins: &'a Pins,
    missing: &'a [&'a Wanted],
}

impl Build<'_> {
    /// Of its log and of its last duration.
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
        step.follow(packages_compiled(self.count()?, log.clone()));
        let mut go = self.go("build");
        for flags in modules::GCFLAGS {
            go.arg(format!("-gcflags={flags}"));
        }
        // A name of a package on each line: how far it is.
        go.args(["-v", "-trimpath", "-mod=readonly", "-ldflags"])
            .arg(self.pins.ldflags(self.module))
            .arg("-o")
            // With a slash: a folder, also for a single program.
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

    /// Of how many packages the programs consist.
    fn count(&self) -> Result<usize, Error> {
        let mut go = self.go("list");
        go.args(["-deps", "-mod=readonly"])
            .args(self.missing.iter().map(|wanted| wanted.binary.package));
        let listed = command::output(&mut go).map_err(failed(&self.name()))?;
        Ok(listed.lines().count())
    }

    fn go(&self, verb: &str) -> Command {
        let mut go = Command::new("go");
        go.current_dir(&self.pins.folder)
            // Static, so that the binary also runs in an image of its own, and no C
            // compiler is needed. The key holds the toolchain's version: no switching.
            .env("CGO_ENABLED", "0")
            .env("GOTOOLCHAIN", "local")
            .env("GOWORK", "off")
            // The compiler collects less garbage: a tenth faster, for a gigabyte.
            .env("GOGC", "400")
            .arg(verb);
        if !self.module.tags.is_empty() {
            go.args(["-tags", self.module.tags]);
        }
        go
    }
}

/// How far Go is, by its log. Packages in Go's own cache are not in it.
fn packages_compiled(all: usize, log: PathBuf) -> impl Fn() -> Option<String> + Send {
    move || {
        let text = std::fs::read_to_string(&log).ok()?;
        let compiled = text.lines().filter(|line| !line.starts_with("go:")).count();
        Some(format!("{compiled} of {all} packages"))
    }
}

/// The file that Go links a package into: the last element of its path that is no version.
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

/// What `go mod download -json` answers, as far as it is needed.
#[derive(Deserialize)]
struct Download {
    #[serde(rename = "Dir")]
    folder: PathBuf,
}

/// The version of a program, such as `v1.37.0`.
pub fn version(name: &str) -> Result<String, Error> {
    let (module, binary) = find(name)?;
    Ok(Pins::read(module)?.version_of(binary).to_owned())
}

/// The folder of the source that a binary is built from, downloaded if need be.
pub fn source(name: &str) -> Result<PathBuf, Error> {
    let (module, binary) = find(name)?;
    let pins = Pins::read(module)?;
    let fails = failed(name);
    let mut go = Command::new("go");
    go.current_dir(&pins.folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .args(["mod", "download", "-json", binary.source]);
    let answer = command::output(&mut go).map_err(&fails)?;
    let found: Download = serde_json::from_str(&answer).map_err(|source| Error::Source {
        module: binary.source,
        source,
    })?;
    Ok(found.folder)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_go_links_it() {
        let names = [
            ("go.etcd.io/etcd/server/v3", "server"),
            ("github.com/argoproj/argo-cd/v3/cmd", "cmd"),
            ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
            ("./coredns", "coredns"),
            (".", "probe"),
        ];
        for (package, name) in names {
            assert_eq!(file_name(package, "probe"), name, "{package}");
        }
    }

    #[test]
    fn programs_of_one_module_are_built_by_one_call_and_unknown_ones_are_refused() {
        let found = by_module(&["kubelet", "etcd", "argocd"]).unwrap();
        let names: Vec<Vec<_>> = found
            .iter()
            .map(|(_, binaries)| binaries.iter().map(|binary| binary.name).collect())
            .collect();
        assert_eq!(names, [vec!["etcd", "kubelet"], vec!["argocd"]]);
        assert!(matches!(by_module(&["kublet"]), Err(Error::Unknown(name)) if name == "kublet"));
    }
}
