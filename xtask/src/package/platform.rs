//! The platforms for which packages are built, and the prerequisites of a build for them.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::process::output;

/// A platform, as OCI names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Platform {
    #[value(name = "linux/amd64")]
    Amd64,
    #[value(name = "linux/arm64")]
    Arm64,
}

impl Platform {
    /// The platform of this machine.
    pub(crate) fn host() -> Self {
        match std::env::consts::ARCH {
            "aarch64" => Self::Arm64,
            _ => Self::Amd64,
        }
    }

    /// The architecture, as OCI names it.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The target, as rustc names it.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The name of a GNU tool for this platform, such as `gcc`.
    pub(super) fn tool(self, name: &str) -> String {
        if self == Self::host() {
            name.to_owned()
        } else {
            format!("{}-{name}", self.debian())
        }
    }

    fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "x86-64-linux-gnu",
            Self::Arm64 => "aarch64-linux-gnu",
        }
    }

    /// Fails if this machine cannot build for the platform. The error lists everything that is
    /// missing, each with the command that installs it.
    pub(super) fn check(self) -> Result<(), Box<dyn Error>> {
        if self == Self::host() {
            return Ok(());
        }
        let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let standard_library = Path::new(&sysroot).join("lib/rustlib").join(self.triple());
        let missing = self.missing(standard_library.is_dir(), |tool| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
        });
        if missing.is_empty() {
            return Ok(());
        }
        Err(missing.join("\n").into())
    }

    fn missing(self, has_library: bool, has_tool: impl Fn(&str) -> bool) -> Vec<String> {
        let (platform, triple) = (self.architecture(), self.triple());
        let mut missing = Vec::new();
        if !has_library {
            missing.push(format!(
                "linux/{platform}: Rust's standard library for {triple} is missing: \
                 rustup target add {triple}"
            ));
        }
        let linker = self.tool("gcc");
        if !has_tool(&linker) {
            let architecture = self.debian();
            missing.push(format!(
                "linux/{platform}: {linker}, which compiles C and links, is missing: \
                 apt-get install gcc-{architecture} libc6-dev-{platform}-cross"
            ));
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_platform_lacks_is_named_with_what_installs_it() {
        let missing = Platform::Arm64.missing(false, |_| false);
        assert_eq!(missing.len(), 2);
        assert!(missing[0].ends_with("rustup target add aarch64-unknown-linux-gnu"));
        assert!(missing[1].contains("libc6-dev-arm64-cross"));
        assert!(Platform::Arm64.missing(true, |_| true).is_empty());
    }
}
