//! The user's cache folder. It holds what is built once for all clusters.
//!
//! Everything in it may be deleted; it is then built again. The name of an entry contains a hash of
//! its inputs. An entry appears by a rename, so an entry that exists is complete.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What can go wrong around the cache folder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No environment variable names the cache folder.
    #[error(
        "no cache folder: set GPU_WORKSPACES_CACHE, XDG_CACHE_HOME or HOME to an absolute path"
    )]
    Unknown,
    /// A file or folder cannot be read or written.
    #[error("{action} {path}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Error {
    /// Names the action and the path of a failed file operation.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// The cache folder.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// A lock, held while files are made or used. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Cache {
    /// The folder that the environment names: `$GPU_WORKSPACES_CACHE`, else
    /// `$XDG_CACHE_HOME/gpu-workspaces`, else `~/.cache/gpu-workspaces`.
    pub fn from_environment() -> Result<Self, Error> {
        Self::locate(|variable| std::env::var_os(variable))
    }

    fn locate(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        // The XDG base directory specification says that programs must ignore relative paths.
        let folder = |name: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        folder("GPU_WORKSPACES_CACHE")
            .or_else(|| folder("XDG_CACHE_HOME").map(|path| path.join("gpu-workspaces")))
            .or_else(|| folder("HOME").map(|path| path.join(".cache/gpu-workspaces")))
            .map(|root| Self { root })
            .ok_or(Error::Unknown)
    }

    /// A cache in the given folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            root: folder.into(),
        }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the clusters' state folders.
    pub fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }

    /// The place of an entry of `kind`, whether or not it exists. `key` is the hash of its inputs.
    pub fn entry(&self, kind: &str, name: &str, key: &str) -> PathBuf {
        self.root.join(kind).join(format!("{name}-{key}"))
    }

    /// The log of a build. The next build of the same name overwrites it.
    pub fn log(&self, name: &str) -> PathBuf {
        self.root.join("logs").join(format!("{name}.log"))
    }

    /// Takes the named lock. Calls `waiting` once if another process holds it.
    pub fn lock(&self, name: &str, waiting: impl FnOnce(&Path)) -> Result<Lock, Error> {
        lock(&self.root.join("locks").join(name), waiting)
    }
}

/// Takes the lock of a file, and makes the file and its folder if they are absent. Calls `waiting`
/// once if another process holds the lock.
pub fn lock(path: &Path, waiting: impl FnOnce(&Path)) -> Result<Lock, Error> {
    create_folder(path.parent().unwrap_or(path))?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(Error::io("open", path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            waiting(path);
            file.lock().map_err(Error::io("lock", path))?;
        }
        Err(TryLockError::Error(source)) => return Err(Error::io("lock", path)(source)),
    }
    Ok(Lock { _file: file })
}

/// Makes `entry`: `make` fills a folder beside it, and a rename publishes that folder. The caller
/// holds the lock that excludes a second maker.
pub fn publish<E: From<Error>>(
    entry: &Path,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let mut unfinished = entry.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    remove_folder(&unfinished)?;
    create_folder(&unfinished)?;
    make(&unfinished)?;
    fs::rename(&unfinished, entry).map_err(Error::io("publish", entry))?;
    Ok(())
}

/// A hash of the named contents, in sixteen hexadecimal digits.
pub fn key<'a>(contents: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in contents {
        // The lengths distinguish ("ab", "c") from ("a", "bc").
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    let first_bytes = hash.finalize().into_iter().take(8);
    let number = first_bytes.fold(0_u64, |number, byte| (number << 8) | u64::from(byte));
    format!("{number:016x}")
}

pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("create folder", path))
}

pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove folder", path)(error))
        }
        _ => Ok(()),
    }
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path))
}

pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    fs::write(path, contents).map_err(Error::io("write", path))
}

/// Writes by a rename: a reader sees the old contents or the new, never a part of them.
pub(crate) fn write_whole(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".fresh");
    let fresh = PathBuf::from(fresh);
    write(&fresh, contents)?;
    fs::rename(&fresh, path).map_err(Error::io("publish", path))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn located(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let find = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        };
        Cache::locate(find).ok().map(|cache| cache.root)
    }

    #[test]
    fn the_most_specific_variable_names_the_cache() {
        let all = [
            ("HOME", "/h"),
            ("XDG_CACHE_HOME", "/x"),
            ("GPU_WORKSPACES_CACHE", "/g"),
        ];
        assert_eq!(located(&all), Some("/g".into()));
        assert_eq!(located(&all[..2]), Some("/x/gpu-workspaces".into()));
        assert_eq!(located(&all[..1]), Some("/h/.cache/gpu-workspaces".into()));
    }

    #[test]
    fn a_relative_path_does_not_scatter_caches_over_the_working_folders() {
        assert_eq!(
            located(&[("XDG_CACHE_HOME", "cache"), ("HOME", "/h")]),
            Some("/h/.cache/gpu-workspaces".into())
        );
        assert_eq!(located(&[]), None);
    }

    /// Two builds at once would mix their files.
    #[test]
    fn a_second_maker_says_that_it_waits_and_goes_on_when_the_first_ends() {
        let folder = std::env::temp_dir().join(format!("lock-{}", std::process::id()));
        let path = folder.join("lock");
        let first = lock(&path, |_| panic!("nobody else holds the lock")).unwrap();
        let has_ended = AtomicBool::new(false);
        let (says, said) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let waits = |lock: &Path| says.send(lock.to_path_buf()).unwrap();
                let _second = lock(&path, waits).unwrap();
                assert!(has_ended.load(Ordering::SeqCst));
            });
            assert_eq!(said.recv().unwrap(), path);
            has_ended.store(true, Ordering::SeqCst);
            drop(first);
        });
        remove_folder(&folder).unwrap();
    }

    #[test]
    fn moving_a_byte_between_name_and_contents_changes_the_key() {
        let one = key([("ab", b"c".as_slice())]);
        assert_ne!(one, key([("a", b"bc".as_slice())]));
        assert_eq!(one, key([("ab", b"c".as_slice())]));
        assert_eq!(one.len(), 16);
    }
}
