//! The user's files.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use devctl_core::host::Files;
use devctl_core::problem::{Code, Problem};
use nix::fcntl::{Flock, FlockArg};

/// The longest file that devctl reads.
const LONGEST: u64 = 16 * 1024 * 1024;
/// The bit of a file's mode that lets its owner write it.
const WRITABLE: u32 = 0o200;

/// The file system.
pub(crate) struct Disk {
    home: PathBuf,
    state: PathBuf,
}

impl Disk {
    /// The files of the user who runs devctl.
    pub(crate) fn new() -> Result<Self, Problem> {
        let home = std::env::home_dir()
            .filter(|home| home.is_absolute())
            .ok_or_else(|| {
                Problem::new(Code::Failed, "NoHome", "the user has no home folder").next("set HOME")
            })?;
        let state = std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| home.join(".local/state"))
            .join("devctl");
        Ok(Self { home, state })
    }
}

impl Files for Disk {
    fn home(&self) -> &Path {
        &self.home
    }

    fn state(&self) -> &Path {
        &self.state
    }

    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = String::new();
        let read = file.take(LONGEST + 1).read_to_string(&mut content)?;
        if read as u64 > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is too large",
            ));
        }
        Ok(Some(content))
    }

    fn replace(&self, path: &Path, content: &str) -> io::Result<()> {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        let mode = match fs::metadata(&target) {
            Ok(metadata) => Some(metadata.permissions().mode()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if mode.is_some_and(|mode| mode & WRITABLE == 0) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is read-only",
            ));
        }
        let folder = target.parent().unwrap_or(Path::new("."));
        create(folder)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
        let written = write(&unfinished, content, mode.unwrap_or(0o600))
            .and_then(|()| fs::rename(&unfinished, &target));
        if written.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>> {
        create(path.parent().unwrap_or(Path::new(".")))?;
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(name)?;
        let lock = Flock::lock(file, FlockArg::LockExclusive);
        lock.map(|lock| -> Box<dyn Send> { Box::new(lock) })
            .map_err(|(_, error)| error.into())
    }

    fn stdin(&self) -> io::Result<String> {
        let mut content = String::new();
        io::stdin()
            .lock()
            .take(LONGEST)
            .read_to_string(&mut content)?;
        Ok(content)
    }
}

/// Creates a folder that only its owner reads, if it does not exist.
fn create(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

fn write(path: &Path, content: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str) -> Disk {
        let home = std::env::temp_dir().join(format!("devctl-{name}-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let state = home.join("state");
        Disk { home, state }
    }

    #[test]
    fn a_symbolic_link_stays_and_its_target_keeps_its_mode() {
        let disk = disk("link");
        let (target, link) = (disk.home.join("dotfiles"), disk.home.join("config"));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        disk.replace(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(
            fs::metadata(&target).unwrap().permissions().mode() & 0o777,
            0o640
        );
        fs::remove_dir_all(&disk.home).unwrap();
    }

    #[test]
    fn a_read_only_file_stays_as_it_is() {
        let disk = disk("read-only");
        let path = disk.home.join("config");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        let error = disk.replace(&path, "new").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(disk.read(&path).unwrap().unwrap(), "old");
        let left = fs::read_dir(&disk.home).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [path]);
        fs::remove_dir_all(&disk.home).unwrap();
    }

    #[test]
    fn a_new_file_and_its_folder_are_for_their_owner_only() {
        let disk = disk("new");
        let path = disk.state.join("known_hosts");
        assert_eq!(disk.read(&path).unwrap(), None);
        drop(disk.lock(&path).unwrap());
        disk.replace(&path, "x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&disk.state), mode(&path)), (0o700, 0o600));
        fs::remove_dir_all(&disk.home).unwrap();
    }
}
