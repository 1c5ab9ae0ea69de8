//! Image layers made from Debian packages. The packages come from the machine's own apt sources.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Cache, key};
use crate::command;
use crate::progress::Progress;

/// The Debian release.
pub const SUITE: &str = "bookworm";
/// The modification time of every file, in seconds since 1970.
const EPOCH: &str = "1700000000";
/// Arguments of `setpriv`; a program and its arguments follow them. The program's processes and
/// mounts end when the process that started it ends.
pub const ISOLATED: &[&str] = &[
    "--pdeathsig",
    "KILL",
    "--",
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--",
];

/// What can go wrong while a layer is made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// mmdebstrap is missing or failed.
    #[error("{0}\n  if it is missing: apt-get install -y util-linux mmdebstrap")]
    Command(#[from] command::Error),
}

/// A layer with a whole root file system.
#[derive(Debug)]
pub struct Layer<'a> {
    /// Its name in the cache.
    pub name: &'a str,
    /// The packages that are installed in addition to the essential ones.
    pub packages: &'a [&'a str],
    /// A command that runs in the finished root.
    pub finally: &'a str,
}

/// Makes the layer, unless the cache has it, and returns its file.
pub fn ensure(cache: &Cache, layer: &Layer<'_>, progress: &Progress) -> Result<PathBuf, Error> {
    let sources = sources()?;
    let entry = cache.entry("debian", layer.name, &layer_key(layer, &sources)?);
    let file = entry.join("layer.tar.gz");
    let step = progress.begin(&format!("Debian packages of {}", layer.name));
    let _lock = cache.lock("debian", |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    if entry.exists() {
        step.end("cached");
        return Ok(file);
    }
    cache::create_folder(&cache.root().join("logs"))?;
    let log = cache.log(&format!("debian-{}", layer.name));
    cache::publish(&entry, |folder| -> Result<(), Error> {
        let mut build = Command::new("setpriv");
        build
            .args(ISOLATED)
            .arg("mmdebstrap")
            .env("SOURCE_DATE_EPOCH", EPOCH)
            .args(["--mode=root", "--variant=minbase"])
            .args(["--aptopt=APT::Install-Recommends \"false\""])
            .args(["--dpkgopt=path-exclude=/usr/share/man/*"])
            .args(["--dpkgopt=path-exclude=/usr/share/locale/*"])
            .args(["--dpkgopt=force-unsafe-io"])
            .arg(format!("--include={}", layer.packages.join(",")))
            .arg(format!("--customize-hook=chroot \"$1\" {}", layer.finally))
            .args([OsStr::new(SUITE), folder.join("layer.tar.gz").as_os_str()])
            .args(&sources);
        Ok(command::logged(&mut build, &log)?)
    })?;
    step.end("built");
    Ok(file)
}

/// The files that list the machine's apt sources.
pub fn sources() -> Result<Vec<PathBuf>, cache::Error> {
    let apt = Path::new("/etc/apt");
    let folder = apt.join("sources.list.d");
    let fails = cache::Error::io("list", &folder);
    let mut found: Vec<PathBuf> = fs::read_dir(&folder)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|e| e.path()))
                .collect::<io::Result<_>>()
        })
        .map_err(fails)?;
    found.retain(|path| {
        path.extension()
            .is_some_and(|e| e == "list" || e == "sources")
    });
    found.push(apt.join("sources.list"));
    found.retain(|path| path.exists());
    found.sort();
    Ok(found)
}

fn layer_key(layer: &Layer<'_>, sources: &[PathBuf]) -> Result<String, cache::Error> {
    let packages = layer.packages.join(",");
    let mut contents = vec![
        ("suite".to_owned(), SUITE.to_owned()),
        ("machine".to_owned(), std::env::consts::ARCH.to_owned()),
        ("packages".to_owned(), packages),
        ("finally".to_owned(), layer.finally.to_owned()),
    ];
    for source in sources {
        contents.push((source.display().to_string(), cache::read(source)?));
    }
    Ok(key(contents
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_bytes()))))
}
