//! Compiles the programs of packages, linked statically.
//!
//! Cargo always gets the whole workspace. Another set of packages would unify other features, and
//! Cargo would compile the AWS SDK again.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use local_cluster::progress::{Progress, Step};

use super::contents::PACKAGES;
use super::platform::Platform;
use crate::cargo;
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The typical duration of a first build of the packages' programs on two cores, while Go compiles, too.
const TYPICAL: Duration = Duration::from_mins(11);

/// The way in which programs are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// Compiled like the tests, and with the same compiled dependencies.
    Dev,
    /// Optimised, and without any path of this machine.
    Release,
    /// The same, and optimised for size: for programs that people download.
    Small,
}

impl Profile {
    fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release | Self::Small => self.name(),
        }
    }

    /// The profile's name in Cargo.toml.
    fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
            Self::Small => "small",
        }
    }
}

/// Compiles one program of this checkout that is in no package, and writes it without symbols.
pub(crate) fn write(program: &str, is_release: bool, platform: Platform, to: &Path) -> Outcome<()> {
    let profile = if is_release {
        Profile::Small
    } else {
        Profile::Dev
    };
    let folder = Source::here().compile_programs(&[program], profile, platform, None)?;
    let mut strip = Command::new(platform.tool("strip"));
    output(strip.arg("-o").arg(to).arg(folder.join(program)))?;
    Ok(())
}

/// A checkout, and its target folder.
pub(super) struct Source {
    pub(super) root: PathBuf,
    pub(super) target: PathBuf,
}

impl Source {
    /// The checkout that this command was called in.
    pub(super) fn here() -> Self {
        let root = crate::root();
        let own = || root.join("target");
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, PathBuf::from);
        Self { root, target }
    }

    /// The folder of the packages after a build. Tests look in the folder of development packages
    /// for their programs.
    pub(super) fn packages(&self, profile: Profile) -> PathBuf {
        self.target.join(profile.folder()).join("packages")
    }

    /// Compiles the programs of all packages for a platform. Returns the folder with the programs.
    pub(super) fn compile(
        &self,
        profile: Profile,
        platform: Platform,
        progress: &Progress,
    ) -> Outcome<PathBuf> {
        let programs: Vec<&str> = PACKAGES.iter().filter_map(|one| one.program).collect();
        let architecture = platform.architecture();
        let step = progress.begin(&format!("compile programs for linux/{architecture}"));
        let folder = self.compile_programs(&programs, profile, platform, Some(&step))?;
        step.end("");
        Ok(folder)
    }

    /// Compiles some programs, always with the features of the whole workspace.
    fn compile_programs(
        &self,
        programs: &[&str],
        profile: Profile,
        platform: Platform,
        step: Option<&Step>,
    ) -> Outcome<PathBuf> {
        platform.check()?;
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .args(["build", "--workspace", "--locked"])
            .args(["--profile", profile.name()]);
        for program in programs {
            cargo.args(["--bin", program]);
        }
        let folder = if profile == Profile::Dev && platform == Platform::host() {
            self.beside_tests(&mut cargo)?;
            self.target.clone()
        } else {
            self.apart(&mut cargo, platform);
            self.target.join(platform.triple())
        };
        if profile == Profile::Small {
            // Gathering entropy from jitter takes AWS-LC 40 ms at each start of a program. Without it
            // AWS-LC asks the kernel.
            cargo.env("AWS_LC_SYS_NO_JITTER_ENTROPY", "1");
        }
        let name = format!("compile-{}", profile.folder());
        cargo::run(&mut cargo, &name, TYPICAL, step)?;
        Ok(folder.join(profile.folder()))
    }

    /// Uses the dependencies that were compiled for the tests. A wrapper of rustc links only this
    /// workspace's programs statically. Cargo mixes the wrapper's path into all symbols, and the
    /// path differs between checkouts, so Cargo gets the wrapper's name and finds it on `PATH`.
    fn beside_tests(&self, cargo: &mut Command) -> Outcome<()> {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.root.join("xtask")].into_iter();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&own)))?;
        cargo
            .env("PATH", path)
            .env("RUSTC_WORKSPACE_WRAPPER", "static-rustc");
        Ok(())
    }

    /// Compiles everything for a target of its own, so that the flags affect no other build. Names
    /// replace the paths of this machine.
    fn apart(&self, cargo: &mut Command, platform: Platform) {
        let triple = platform.triple();
        let renamed = renamed(&self.root, &self.target, &cargo_home());
        let mut flags = OsString::from("-Ctarget-feature=+crt-static");
        let mut for_c = OsString::new();
        for (path, name) in &renamed {
            flags.push("\u{1f}--remap-path-prefix=");
            for_c.push("-ffile-prefix-map=");
            for text in [&mut flags, &mut for_c] {
                text.push(path);
                text.push("=");
                text.push(name);
            }
            for_c.push(" ");
        }
        let variable = triple.replace('-', "_");
        cargo
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            // This switches off the wrapper in .cargo/config.toml, which uses an unstable flag of
            // rustc. A release uses nothing unstable.
            .env("RUSTC_WRAPPER", "")
            .env(format!("CFLAGS_{variable}"), for_c)
            .env(
                format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
                platform.tool("gcc"),
            )
            .args(["--target", triple]);
        if platform == Platform::Arm64 {
            // Some kernels for arm64 have pages of 64 KiB, 2 to the power of 16. jemalloc, the
            // provider's allocator, also runs with smaller pages than those that it is built for.
            cargo.env("JEMALLOC_SYS_WITH_LG_PAGE", "16");
        }
    }
}

/// The paths of this machine and the names that replace them. Inner folders come last, because
/// compilers use the last entry that matches.
fn renamed(root: &Path, target: &Path, cargo_home: &Path) -> [(PathBuf, &'static str); 3] {
    let mut renamed = [
        (root.to_owned(), "/gpu-workspaces"),
        (target.to_owned(), "/target"),
        (cargo_home.to_owned(), "/cargo"),
    ];
    renamed.sort_by_key(|(path, _)| path.components().count());
    renamed
}

fn cargo_home() -> PathBuf {
    let home = || std::env::home_dir().unwrap_or_default().join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rustc uses the last name that matches a path.
    #[test]
    fn a_folder_inside_another_has_a_name_of_its_own() {
        let at = |renamed: &[(PathBuf, &'static str)], name: &str| {
            renamed.iter().position(|(_, one)| *one == name)
        };
        let (home, elsewhere) = (Path::new("/home/me/.cargo"), Path::new("/tmp/x"));
        let inside = renamed(Path::new("/a/b"), Path::new("/a/b/target"), home);
        assert!(at(&inside, "/target") > at(&inside, "/gpu-workspaces"));
        let around = renamed(Path::new("/home/me"), elsewhere, home);
        assert!(at(&around, "/cargo") > at(&around, "/gpu-workspaces"));
    }
}
