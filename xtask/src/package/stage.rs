//! Copies a package's manifests into one folder, because the crossplane CLI packs a folder.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use super::build::Request;
use super::contents::{ORGANISATION, Package};
use super::dependencies::{self, Served};
use super::image;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The registry that committed manifests name. Staging replaces it by the registry of the push.
pub(super) const COMMITTED_REGISTRY: &str = "registry.platform.acme.io";

/// A package's files, ready to be packed.
pub(super) struct Staged {
    /// The folder with its manifests.
    pub(super) folder: PathBuf,
    /// The folder with its examples. It does not exist if the package has no examples.
    pub(super) examples: PathBuf,
    /// The names and digests of all its files.
    pub(super) digests: String,
    /// Dependencies that the registry lacks. The manifest leaves them out.
    pub(super) missing: Vec<String>,
}

/// Copies a package's manifests into the folder `to`, and its examples into a folder beside it.
/// Both folders are emptied first. The copied manifest leaves out dependencies that the registry
/// lacks.
pub(super) fn stage(
    package: &Package,
    root: &Path,
    request: &Request<'_>,
    to: &Path,
) -> Outcome<Staged> {
    let registry = request.registry;
    let examples = to.with_extension("examples");
    for folder in [to, &examples] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    copy_all(&root.join("package").join(package.folder), to, registry)?;
    for folder in package.manifests {
        copy_files(&root.join(folder), &to.join(folder), registry)?;
        for file in sorted(&to.join(folder))? {
            if package.leaves_out(&file) {
                fs::remove_file(file)?;
            }
        }
    }
    for example in package.examples {
        let from = root.join("examples").join(example);
        if from.is_dir() {
            copy_files(&from, &examples.join(example), registry)?;
        } else {
            copy_file(&from, &examples.join(example), registry)?;
        }
    }
    let manifest = to.join("crossplane.yaml");
    let text = fs::read_to_string(&manifest)?;
    let Served {
        manifest: text,
        missing,
    } = dependencies::served(&text, registry, ORGANISATION, request.holds)?;
    fs::write(&manifest, text)?;
    let mut digests = digests(to)?;
    if examples.exists() {
        digests.push_str(&self::digests(&examples)?);
    }
    Ok(Staged {
        folder: to.to_owned(),
        examples,
        digests,
        missing,
    })
}

/// The names and digests of all files below a folder, in the order of names.
fn digests(folder: &Path) -> Outcome<String> {
    let mut together = String::new();
    for path in sorted(folder)? {
        together.push_str(&path.file_name().unwrap_or_default().to_string_lossy());
        together.push_str(&if path.is_dir() {
            digests(&path)?
        } else {
            image::sha256(&fs::read(&path)?)
        });
    }
    Ok(together)
}

/// Copies the manifests of a folder and of its subfolders.
fn copy_all(from: &Path, to: &Path, registry: &str) -> Outcome<()> {
    copy_files(from, to, registry)?;
    for folder in sorted(from)?.into_iter().filter(|path| path.is_dir()) {
        let target = to.join(folder.file_name().unwrap_or_default());
        copy_all(&folder, &target, registry)?;
    }
    Ok(())
}

/// Copies the manifests that are directly in a folder. Replaces the committed registry by
/// `registry`.
fn copy_files(from: &Path, to: &Path, registry: &str) -> Outcome<()> {
    fs::create_dir_all(to)?;
    for file in sorted(from)?.into_iter().filter(|path| path.is_file()) {
        if file.extension().is_some_and(|e| e == "yaml") {
            copy_file(
                &file,
                &to.join(file.file_name().unwrap_or_default()),
                registry,
            )?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, registry: &str) -> Outcome<()> {
    let text = fs::read_to_string(from).map_err(|e| format!("{}: {e}", from.display()))?;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, text.replace(COMMITTED_REGISTRY, registry))?;
    Ok(())
}

/// The entries of a folder, sorted by name.
pub(crate) fn sorted(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::compile::Profile;

    const PACKAGE: Package = Package {
        kind: "configuration",
        name: "configuration-a",
        folder: "a",
        manifests: &["xrds"],
        without: &["another.yaml"],
        examples: &["claims", "platform/one.yaml"],
        program: None,
    };

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_package_holds_its_own_manifests_and_not_those_of_its_neighbours() {
        let root = std::env::temp_dir().join(format!("stage-{}", std::process::id()));
        write(&root, "package/a/crossplane.yaml", "kind: Configuration\n");
        write(&root, "package/a/crds/own.yaml", "own\n");
        write(&root, "package/b/crossplane.yaml", "kind: Function\n");
        write(&root, "xrds/one.yaml", &format!("{COMMITTED_REGISTRY}/x\n"));
        write(&root, "xrds/another.yaml", "another's\n");
        write(&root, "xrds/notes.md", "for people\n");
        write(&root, "xrds/namespaced/two.yaml", "another's\n");
        for example in ["claims/a.yaml", "platform/one.yaml", "platform/two.yaml"] {
            write(&root, &format!("examples/{example}"), "example\n");
        }
        let request = Request {
            profile: Profile::Dev,
            platforms: &[],
            registry: "registry.test:5000",
            holds: &|_| true,
        };

        let staged = stage(&PACKAGE, &root, &request, &root.join("staged")).unwrap();

        let to = staged.folder;
        assert!(staged.examples.join("claims/a.yaml").is_file());
        assert_eq!(sorted(&staged.examples.join("platform")).unwrap().len(), 1);
        assert!(to.join("crds/own.yaml").is_file());
        let copied = fs::read_to_string(to.join("xrds/one.yaml")).unwrap();
        assert_eq!(copied, "registry.test:5000/x\n");
        assert_eq!(sorted(&to.join("xrds")).unwrap().len(), 1);
        fs::remove_dir_all(&root).unwrap();
    }
}
