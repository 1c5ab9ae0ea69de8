//! The programs in packages, linked statically.
//!
//! Always the whole workspace: another set of packages would unify other features and
//! compile the AWS SDK again.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::progress::{Progress, Step};

use super::contents::PACKAGES;
use super::platform::Platform;
use crate::cargo;
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How programs are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// As tests are, and from the same compiled dependencies.
    Dev,
    /// Optimised, with no path of this machine in it.
    Release,
}

impl Profile {
    fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

/// Compiles one program of this checkout that is in no package, and writes it without
/// its symbols.
pub(crate) fn write(program: &str, is_release: bool, platform: Platform, to: &Path) -> Outcome<()> {
    let profile = super::profile(is_release);
    let folder = Source::here().compile_programs(&[program], profile, platform, None)?;
    let mut strip = Command::new(platform.tool("strip"));
    output(strip.arg("-o").arg(to).arg(folder.join(program)))?;
    Ok(())
}

/// A checkout and the folder that it is compiled into.
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

    /// Where packages lie after a build. Development packages for this machine are where
    /// tests look for their programs.
    pub(super) fn packages(&self, profile: Profile) -> PathBuf {
        self.target.join(profile.folder()).join("packages")
    }

    /// Compiles the programs of all packages for a platform. Answers the folder that they
    /// are in.
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

    /// Compiles some programs. Features are those of the whole workspace, whatever they
    /// are.
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
            .args(["build", "--workspace", "--locked"]);
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
        if profile == Profile::Release {
            cargo.arg("--release");
        }
        cargo::run(&mut cargo, &format!("compile-{}", profile.folder()), step)?;
        Ok(folder.join(profile.folder()))
    }

    /// Only this workspace's crates are compiled for static linking, by a wrapper, and
    /// dependencies are those of tests. Found by its name: Cargo mixes the wrapper's path
    /// into all symbols, and each checkout has another.
    fn beside_tests(&self, cargo: &mut Command) -> Outcome<()> {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.root.join("xtask")].into_iter();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&own)))?;
        cargo
            .env("PATH", path)
            .env("RUSTC_WORKSPACE_WRAPPER", "static-rustc");
        Ok(())
    }

    /// Everything is compiled for the platform alone, so that the flags are nobody
    /// else's, and paths of this machine become names.
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
            // Without what .cargo/config.toml names: nothing unstable is in a release.
            .env("RUSTC_WRAPPER", "")
            .env(format!("CFLAGS_{variable}"), for_c)
            .env(
                format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
                platform.tool("gcc"),
            )
            .args(["--target", triple]);
    }
}

/// Paths of this machine, the inner ones last: the last that fits is taken.
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

    /// rustc takes the last name that fits a path.
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
