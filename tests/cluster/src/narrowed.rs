//! Sources that Go compiles without the parts that no test uses.
//!
//! A program such as provider-aws's for EC2 contains the types, controllers and Terraform resources
//! of every service of AWS. The tests use those of EC2. Go compiles a copy of the sources in which
//! the other services are not registered. What is left is the authors' code, unchanged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::cache;

/// A module that is copied, and the changes of the copy.
#[derive(Debug)]
pub struct Narrowed {
    /// The module, as `go.mod` requires it.
    pub module: &'static str,
    /// What is different in the copy.
    pub changes: &'static [Change],
}

/// One change. It fails if it finds nothing to change, because the module has another form then.
#[derive(Debug)]
pub enum Change {
    /// A file that registers packages registers fewer: it loses the imports of the others, the lines
    /// that use them, and the functions that have them in their signatures.
    Registers {
        /// The file.
        file: &'static str,
        /// The path, with a slash at its end, that is common to the imports.
        below: &'static str,
        /// The next elements of the paths of the imports that stay.
        kept: &'static [&'static str],
    },
    /// Of the files of a folder with this ending, only those that are named stay.
    Files {
        /// The folder.
        folder: &'static str,
        /// The ending of the files' names.
        ending: &'static str,
        /// Those that stay, without the ending.
        kept: &'static [&'static str],
    },
    /// The copy gets a file from the folder with the module's pins.
    Added {
        /// Its place in the copy.
        file: &'static str,
        /// Its name in the folder with the pins.
        from: &'static str,
    },
}

/// What can go wrong while sources are narrowed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, copied or written.
    #[error(transparent)]
    File(#[from] cache::Error),
    /// The module has another form than the change expects, perhaps in another version.
    #[error("{0} has nothing that its change in tests/cluster/src/provider_aws.rs leaves out")]
    Unchanged(PathBuf),
}

impl Narrowed {
    /// Changes a copy of the sources of this module. `pins` is the folder with the files that are added.
    pub(crate) fn apply(&self, copy: &Path, pins: &Path) -> Result<(), Error> {
        self.changes
            .iter()
            .try_for_each(|change| change.apply(copy, pins))
    }
}

impl Change {
    fn apply(&self, copy: &Path, pins: &Path) -> Result<(), Error> {
        match self {
            Self::Registers { file, below, kept } => {
                let path = copy.join(file);
                let before = cache::read(&path)?;
                let after = registering(&before, below, kept);
                if after == before {
                    return Err(Error::Unchanged(path));
                }
                Ok(cache::write(&path, after)?)
            }
            Self::Files {
                folder,
                ending,
                kept,
            } => remove_files(&copy.join(folder), ending, kept),
            Self::Added { file, from } => {
                let text = cache::read(&pins.join(from))?;
                Ok(cache::write(&copy.join(file), text)?)
            }
        }
    }
}

/// The text of a Go file without the packages below a path, except for those that are kept.
fn registering(text: &str, below: &str, kept: &[&str]) -> String {
    let mut gone = BTreeSet::new();
    let mut in_gone_function = false;
    let mut left = String::new();
    for line in text.lines() {
        if in_gone_function {
            in_gone_function = line != "}";
            continue;
        }
        if let Some((name, path)) = import(line)
            && let Some(rest) = path.strip_prefix(below)
            && !kept.contains(&rest.split('/').next().unwrap_or_default())
        {
            gone.insert(name);
            continue;
        }
        if qualifiers(line).any(|name| gone.contains(name)) {
            in_gone_function = line.starts_with("func ");
            continue;
        }
        left.push_str(line);
        left.push('\n');
    }
    left
}

/// The name and the path of an import that has a line of its own.
fn import(line: &str) -> Option<(&str, &str)> {
    let (name, path) = line.trim().strip_suffix('"')?.split_once('"')?;
    let is_name = |text: &str| text.chars().all(is_in_name);
    let last = path.rsplit('/').next()?;
    match name.trim_end() {
        "" => Some((last, path)),
        name if is_name(name) => Some((name, path)),
        _ => None,
    }
}

/// The names before the dots of a line.
fn qualifiers(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('.').map(|(dot, _)| {
        let before = &line[..dot];
        let name = before.trim_end_matches(is_in_name);
        &before[name.len()..]
    })
}

fn is_in_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn remove_files(folder: &Path, ending: &str, kept: &[&str]) -> Result<(), Error> {
    let mut removed = 0;
    for path in entries(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_gone = name
            .strip_suffix(ending)
            .is_some_and(|name| !kept.contains(&name));
        if is_gone {
            fs::remove_file(&path).map_err(cache::Error::io("remove", &path))?;
            removed += 1;
        }
    }
    if removed == 0 {
        return Err(Error::Unchanged(folder.to_owned()));
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, cache::Error> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()
    });
    listed.map_err(cache::Error::io("list", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTER: &str = "\
package cluster

import (
\t\"k8s.io/apimachinery/pkg/runtime\"

\tv1beta1 \"x.io/apis/acm/v1beta1\"
\tv1beta1ec2 \"x.io/apis/ec2/v1beta1\"
)

func init() {
\tAddToSchemes = append(AddToSchemes,
\t\tv1beta1.SchemeBuilder.AddToScheme,
\t\tv1beta1ec2.SchemeBuilder.AddToScheme,
\t)
}
";

    #[test]
    fn a_group_that_no_test_uses_is_not_registered_and_all_else_stays() {
        let left = registering(REGISTER, "x.io/apis/", &["ec2"]);
        let gone = [
            "\tv1beta1 \"x.io/apis/acm/v1beta1\"",
            "\t\tv1beta1.SchemeBuilder.AddToScheme,",
        ];
        let expected: Vec<_> = REGISTER
            .lines()
            .filter(|line| !gone.contains(line))
            .collect();
        assert_eq!(left.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_client_of_a_service_that_no_test_uses_goes_as_a_whole() {
        let clients = "\
import (
\t\"sdk/acm\"
\t\"sdk/ec2\"
)

func (c *Clients) ACM(ctx context.Context) *acm.Client {
\treturn client[*acm.Client](ctx, c)
}

func (c *Clients) EC2(ctx context.Context) *ec2.Client {
\treturn client[*ec2.Client](ctx, c)
}
";
        let left = registering(clients, "sdk/", &["ec2"]);
        let expected = "\
import (
\t\"sdk/ec2\"
)


func (c *Clients) EC2(ctx context.Context) *ec2.Client {
\treturn client[*ec2.Client](ctx, c)
}
";
        assert_eq!(left, expected);
    }

    /// `scratch` is a folder that the test may fill.
    fn narrowed(scratch: &Path, changes: &'static [Change]) -> Result<PathBuf, Error> {
        let copy = scratch.join("copy");
        fs::create_dir_all(copy.join("setup")).unwrap();
        fs::write(copy.join("register.go"), REGISTER).unwrap();
        for name in ["zz_acm_setup.go", "zz_ec2_setup.go", "doc.go"] {
            fs::write(copy.join("setup").join(name), "package setup\n").unwrap();
        }
        fs::write(scratch.join("served.go"), "package served\n").unwrap();
        let module = Narrowed {
            module: "x.io",
            changes,
        };
        module.apply(&copy, scratch).map(|()| copy)
    }

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("narrowed-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        folder
    }

    #[test]
    fn the_copy_has_what_stays_and_what_is_added() {
        let folder = scratch("copy");
        let copy = narrowed(
            &folder,
            &[
                Change::Files {
                    folder: "setup",
                    ending: "_setup.go",
                    kept: &["zz_ec2"],
                },
                Change::Added {
                    file: "served.go",
                    from: "served.go",
                },
            ],
        )
        .unwrap();
        assert!(copy.join("register.go").exists() && copy.join("served.go").exists());
        let mut left = entries(&copy.join("setup")).unwrap();
        left.sort();
        let expected = ["doc.go", "zz_ec2_setup.go"].map(|name| copy.join("setup").join(name));
        assert_eq!(left, expected);
        fs::remove_dir_all(folder).unwrap();
    }

    /// Otherwise a new version of a module would be compiled whole, for most of an hour.
    #[test]
    fn a_change_that_finds_nothing_fails_and_names_the_place() {
        let folder = scratch("unchanged");
        let files = Change::Files {
            folder: "setup",
            ending: "_other.go",
            kept: &[],
        };
        let registers = Change::Registers {
            file: "register.go",
            below: "x.io/other/",
            kept: &[],
        };
        for (change, place) in [(files, "setup"), (registers, "register.go")] {
            let changes = Box::leak(Box::new([change]));
            let error = narrowed(&folder, changes).unwrap_err();
            assert!(error.to_string().contains(place), "{error}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
