//! Files that an earlier broker may have left.

use std::io;
use std::path::Path;

/// Removes a file, if there is one.
pub(super) fn removed(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
