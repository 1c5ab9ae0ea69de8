//! Reads files that other users write. It never blocks, never follows links, and limits the size.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a regular file. Opening a pipe could block, and a link could lead to a file that only root
/// may read.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file"))
    }
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut content)?;
    if u64::try_from(content.len()).is_ok_and(|length| length <= limit) {
        Ok(content)
    } else {
        Err(io::Error::other(format!("it is longer than {limit} bytes")))
    }
}

/// Replaces a file so that readers never see a part of it. It uses a predictable temporary name, so
/// it must not be used in folders where other users may write.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let mut file = File::create(&name)?;
    file.set_permissions(PermissionsExt::from_mode(mode))?;
    file.write_all(content)?;
    std::fs::rename(&name, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_or_link_neither_blocks_nor_misleads_the_agent() {
        let folder = std::env::temp_dir().join(format!("agent-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (pipe, link) = (folder.join("pipe"), folder.join("link"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert!(read(&pipe, 10).is_err());
        assert!(read(&link, 1 << 20).is_err());
        let long = folder.join("long");
        replace(&long, b"0123456789", 0o600).unwrap();
        assert_eq!(read(&long, 10).unwrap(), b"0123456789");
        assert!(read(&long, 9).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
