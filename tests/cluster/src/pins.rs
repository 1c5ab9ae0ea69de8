//! The pinned versions of programs that are built from source, and the cache keys made from them.

use std::path::{Path, PathBuf};

use crate::cache::{self, key};
use crate::modules::{Binary, GCFLAGS, Module};

/// The contents of a module's folder: its pins and, for our own programs, their source.
#[derive(Debug)]
pub struct Pins {
    /// The folder.
    pub folder: PathBuf,
    /// The names and contents of its files, sorted by name.
    files: Vec<(String, String)>,
}

impl Pins {
    /// Reads `go.mod`, `go.sum` and the Go files of the module's folder, and the Go files
    /// of our programs below it.
    pub fn read(module: &Module) -> Result<Self, cache::Error> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("binaries")
            .join(module.folder);
        let mut files = Vec::new();
        read_files(&folder, ".", &mut files)?;
        for binary in module.binaries {
            if binary.package.starts_with("./") {
                read_files(&folder, binary.package, &mut files)?;
            }
        }
        files.sort();
        Ok(Self { folder, files })
    }

    /// The version of `module` that `go.mod` requires.
    pub fn version(&self, module: &str) -> Option<&str> {
        self.go_mod_lines().find_map(|line| {
            let mut words = line
                .trim()
                .trim_start_matches("require ")
                .split_whitespace();
            (words.next() == Some(module)).then(|| words.next())?
        })
    }

    /// The oldest Go that `go.mod` accepts, such as `1.26.0`.
    pub fn go_version(&self) -> Option<&str> {
        self.go_mod_lines()
            .find_map(|line| line.strip_prefix("go "))
    }

    fn go_mod_lines(&self) -> impl Iterator<Item = &str> {
        self.files
            .iter()
            .filter(|(name, _)| name == "go.mod")
            .flat_map(|(_, text)| text.lines())
    }

    /// The version of a program, such as `v1.37.0`; `unknown` for our own programs without a
    /// version.
    pub fn version_of(&self, binary: &Binary) -> &str {
        self.version(binary.source).unwrap_or("unknown")
    }

    /// The linker flags, with the versions filled in. They always strip symbols.
    pub fn ldflags(&self, module: &Module) -> String {
        let mut flags = "-s -w".to_owned();
        for stamp in module.stamps {
            let version = self.version(stamp.source).unwrap_or_default();
            let value = stamp.part.of(version);
            flags.extend([" -X ", stamp.variable, "=", value]);
        }
        flags
    }

    /// A hash of everything that affects the binary's bytes.
    pub fn key(&self, module: &Module, binary: &Binary, go: &str) -> String {
        let ldflags = self.ldflags(module);
        let gcflags = GCFLAGS.join(" ");
        let settings = [
            ("gcflags", gcflags.as_str()),
            ("go", go),
            ("os", std::env::consts::OS),
            ("architecture", std::env::consts::ARCH),
            ("package", binary.package),
            ("ldflags", &ldflags),
            ("tags", module.tags),
        ];
        let files = self
            .files
            .iter()
            .filter(|(name, _)| concerns(name, binary))
            .map(|(name, text)| (name.as_str(), text.as_str()));
        let narrowed = format!("{:?}", module.narrowed);
        let narrowed = (!module.narrowed.is_empty()).then_some(("narrowed", narrowed.as_str()));
        key(settings
            .into_iter()
            .chain(narrowed)
            .chain(files)
            .map(|(name, text)| (name, text.as_bytes())))
    }
}

/// Whether a file of the module affects the program: the module's own files and the program's own
/// source do.
fn concerns(file: &str, binary: &Binary) -> bool {
    match file.rsplit_once('/') {
        Some((folder, _)) => folder == binary.package,
        None => true,
    }
}

/// Adds the `go.mod`, `go.sum` and Go files of one folder of the module, with their paths.
fn read_files(
    module: &Path,
    below: &str,
    files: &mut Vec<(String, String)>,
) -> Result<(), cache::Error> {
    let folder = module.join(below);
    let listing = std::fs::read_dir(&folder).map_err(cache::Error::io("list", &folder))?;
    for entry in listing {
        let entry = entry.map_err(cache::Error::io("list", &folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let extension = Path::new(&name).extension().and_then(|text| text.to_str());
        if matches!(extension, Some("mod" | "sum" | "go")) {
            let path = match below {
                "." => name,
                folder => format!("{folder}/{name}"),
            };
            files.push((path, cache::read(&entry.path())?));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
