//! What the machine must have, checked in full before anything starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use crate::command;
use crate::crossplane::AUTHORITIES;
use crate::progress::Progress;

/// Memory that the cluster's processes take, with room for a few pods.
const MEMORY: u64 = 3 << 30;
/// Disk for the images and data of a cluster.
const DISK: u64 = 3 << 30;
/// Disk for Go's caches and the binaries, when some are still to be built.
const DISK_TO_BUILD: u64 = 16 << 30;

/// How to see that something is on the machine.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// A program of the same name.
    Program,
    /// These files.
    Files(&'static [&'static str]),
    /// This Python runs.
    Python(&'static str),
}

/// What Debian packages bring: its name to people, the package, and the sign of it.
const PACKAGED: &[(&str, &str, Sign)] = &[
    ("conntrack", "conntrack", Sign::Program),
    ("gzip", "gzip", Sign::Program),
    ("ip", "iproute2", Sign::Program),
    ("iptables", "iptables", Sign::Program),
    ("mount", "mount", Sign::Program),
    ("nft", "nftables", Sign::Program),
    ("python3", "python3", Sign::Program),
    (
        "python3's venv and ensurepip",
        "python3-venv",
        Sign::Python("import venv, ensurepip"),
    ),
    ("runc", "runc", Sign::Program),
    ("setsid", "util-linux", Sign::Program),
    ("tar", "tar", Sign::Program),
    ("unshare", "util-linux", Sign::Program),
    (
        "CNI plugins in /usr/lib/cni",
        "containernetworking-plugins",
        Sign::Files(&[
            "/usr/lib/cni/host-local",
            "/usr/lib/cni/loopback",
            "/usr/lib/cni/portmap",
            "/usr/lib/cni/ptp",
        ]),
    ),
    (
        "a bundle of certificate authorities",
        "ca-certificates",
        Sign::Files(&[AUTHORITIES]),
    ),
];

/// What was found on the machine.
#[derive(Debug, Clone)]
struct Facts {
    root: bool,
    /// Such as `go1.26.8`.
    go: Option<String>,
    /// Of [`PACKAGED`], by name.
    present: Vec<&'static str>,
    memory: u64,
    disk: u64,
    cache: PathBuf,
}

/// What the caller is about to do.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// The oldest Go that can build the binaries, such as `1.26.0`.
    pub go: &'a str,
    /// Whether some binaries are still to be built.
    pub building: bool,
}

/// Something that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What.
    pub what: String,
    /// How to get it.
    pub remedy: Remedy,
}

/// How to get what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// By installing a Debian package.
    Package(&'static str),
    /// By something that only a person can do.
    Advice(String),
}

/// The machine lacks something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This is missing.
    #[error("{}", render(.0))]
    Missing(Vec<Missing>),
    /// The packages could not be installed.
    #[error("install prerequisites: {0}")]
    Install(#[from] command::Error),
}

/// Checks everything; with `install`, missing Debian packages are installed.
pub fn ensure(
    needs: Needs<'_>,
    cache: &Path,
    install: bool,
    progress: &mut Progress,
) -> Result<(), Error> {
    let mut found = missing(&gather(cache), needs);
    let packages = packages(&found);
    if install && !packages.is_empty() && geteuid().is_root() {
        let step = progress.begin(&format!("install {}", packages.join(" ")));
        apt_get(&["update", "-qq"])?;
        let options = ["install", "-y", "-qq", "--no-install-recommends"];
        apt_get(&[options.as_slice(), &packages].concat())?;
        step.end("done");
        found = missing(&gather(cache), needs);
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(Error::Missing(found))
    }
}

fn apt_get(arguments: &[&str]) -> Result<(), Error> {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(arguments);
    command::output(&mut command)?;
    Ok(())
}

fn missing(facts: &Facts, needs: Needs<'_>) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut require = |present: bool, what: String, remedy: Remedy| {
        if !present {
            missing.push(Missing { what, remedy });
        }
    };
    let advice = |text: &str| Remedy::Advice(text.to_owned());
    require(
        facts.root,
        "root (network namespaces, mounts and containers)".to_owned(),
        advice("run the command as root, for example with sudo -E"),
    );
    require(
        facts.go.as_deref().is_some_and(|go| at_least(go, needs.go)),
        match &facts.go {
            Some(found) => format!("Go {} or newer (found {found})", needs.go),
            None => format!("Go {} or newer", needs.go),
        },
        advice("install it as https://go.dev/doc/install says, and put go on PATH"),
    );
    for (name, package, _) in PACKAGED {
        let found = facts.present.contains(name);
        require(found, (*name).to_owned(), Remedy::Package(package));
    }
    require(
        facts.memory >= MEMORY,
        format!(
            "{} of free memory (found {})",
            gib(MEMORY),
            gib(facts.memory)
        ),
        advice("end something that uses memory"),
    );
    let disk = if needs.building { DISK_TO_BUILD } else { DISK };
    require(
        facts.disk >= disk,
        format!("{} of free disk (found {})", gib(disk), gib(facts.disk)),
        Remedy::Advice(format!(
            "free some below {}, or name another folder in GPU_WORKSPACES_CACHE",
            facts.cache.display()
        )),
    );
    require(
        fit_for_lists(&facts.cache),
        format!(
            "a cache folder without \" ' : or spaces ({})",
            facts.cache.display()
        ),
        advice("name another folder in GPU_WORKSPACES_CACHE"),
    );
    missing
}

/// PATH and PYTHONPATH separate by colons, configuration files quote by quotes.
fn fit_for_lists(path: &Path) -> bool {
    let unfit =
        |character: char| matches!(character, ':' | '"' | '\'') || character.is_whitespace();
    path.to_str().is_some_and(|text| !text.contains(unfit))
}

/// The newer of two versions.
pub fn newer(one: String, other: &str) -> String {
    if at_least(&one, other) {
        one
    } else {
        other.to_owned()
    }
}

/// Whether `found` (`go1.26.8`) is `wanted` (`1.26.0`) or newer.
fn at_least(found: &str, wanted: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        text.trim_start_matches("go")
            .split(['.', ' ', '-'])
            .map_while(|number| number.parse().ok())
            .collect()
    };
    numbers(found) >= numbers(wanted)
}

fn packages(missing: &[Missing]) -> Vec<&'static str> {
    let mut packages: Vec<_> = missing
        .iter()
        .filter_map(|missing| match missing.remedy {
            Remedy::Package(package) => Some(package),
            Remedy::Advice(_) => None,
        })
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// One list for people, with one command for all packages at its end.
fn render(missing: &[Missing]) -> String {
    let mut lines = vec!["this machine lacks what the local cluster needs:".to_owned()];
    for Missing { what, remedy } in missing {
        lines.push(match remedy {
            Remedy::Package(package) => format!("  - {what}: apt-get install {package}"),
            Remedy::Advice(advice) => format!("  - {what}: {advice}"),
        });
    }
    let packages = packages(missing);
    if !packages.is_empty() {
        lines.push("all packages at once:".to_owned());
        lines.push(format!(
            "  apt-get update && apt-get install -y --no-install-recommends {}",
            packages.join(" ")
        ));
        lines.push("or let `cargo xtask cluster up --install-prerequisites` do it".to_owned());
    }
    lines.join("\n")
}

fn gather(cache: &Path) -> Facts {
    let mut go = Command::new("go");
    go.env("GOTOOLCHAIN", "local").args(["env", "GOVERSION"]);
    Facts {
        root: geteuid().is_root(),
        go: command::output(&mut go)
            .ok()
            .map(|version| version.trim().to_owned()),
        present: PACKAGED
            .iter()
            .filter(|(name, _, sign)| is_present(name, *sign))
            .map(|(name, ..)| *name)
            .collect(),
        memory: available_memory(),
        disk: available_disk(cache),
        cache: cache.to_path_buf(),
    }
}

fn is_present(name: &str, sign: Sign) -> bool {
    match sign {
        Sign::Program => on_path(name),
        Sign::Files(files) => files.iter().all(|file| Path::new(file).exists()),
        Sign::Python(code) => command::output(Command::new("python3").args(["-c", code])).is_ok(),
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Not on every user's PATH, but where the parts look.
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .any(|folder| folder.join(program).is_file())
}

/// In bytes; 0 if the kernel does not say.
fn available_memory() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes: Option<u64> = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.unwrap_or(0) << 10
}

/// In bytes, where `folder` is or will be; 0 if the file system does not say.
fn available_disk(folder: &Path) -> u64 {
    folder
        .ancestors()
        .find_map(|existing| statvfs(existing).ok())
        .map_or(0, |disk| disk.blocks_available() * disk.fragment_size())
}

fn gib(bytes: u64) -> String {
    format!("{}.{} GiB", bytes >> 30, ((bytes >> 20) % 1024) * 10 / 1024)
}

#[cfg(test)]
#[path = "prerequisites_tests.rs"]
mod tests;
