//! The processes of the pod, by `/proc`. The containers of the pod share their process ids.

use std::io;
use std::path::Path;

use bastion_core::processes::{Process, ancestors, read};
use tokio::net::UnixStream;

/// A process and its parent's id; none if it has ended.
fn look(id: i32) -> Option<(Process, i32)> {
    read(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// The process at the other end of a socket, and its ancestors.
pub(super) fn peer(stream: &UnixStream) -> io::Result<Vec<Process>> {
    let id = stream.peer_cred()?.pid();
    let id = id.ok_or_else(|| io::Error::other("the kernel does not tell the process"))?;
    Ok(ancestors(id, look))
}

/// Whether a process lives.
pub(super) fn is_alive(process: Process) -> bool {
    look(process.id).is_some_and(|(found, _)| found == process)
}

/// The file with the process of sshd that listens. Only the broker can write it.
const LISTENER: &str = "listener";

/// Remembers the process of sshd that listens, for a broker that starts after this one.
pub(super) fn remember(folder: &Path, listener: Process) -> io::Result<()> {
    let path = folder.join(LISTENER);
    let unfinished = folder.join(".listener");
    std::fs::write(&unfinished, format!("{} {}", listener.id, listener.started))?;
    std::fs::rename(unfinished, path)
}

/// The process of sshd that an earlier broker knew, if it still lives. sshd goes on when the broker is
/// killed.
pub(super) fn remembered(folder: &Path) -> io::Result<Option<Process>> {
    let text = match std::fs::read_to_string(folder.join(LISTENER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let process = text.split_once(' ').and_then(|(id, started)| {
        Some(Process {
            id: id.parse().ok()?,
            started: started.parse().ok()?,
        })
    });
    Ok(process.filter(|process| is_alive(*process)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sshd_is_known_again_while_it_lives() {
        let folder = std::env::temp_dir().join(format!("bastion-sshd-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(remembered(&folder).unwrap(), None);
        let id = i32::try_from(std::process::id()).unwrap();
        let (own, _) = look(id).unwrap();
        remember(&folder, own).unwrap();
        assert_eq!(remembered(&folder).unwrap(), Some(own));
        let older = Process {
            started: own.started + 1,
            ..own
        };
        remember(&folder, older).unwrap();
        assert_eq!(remembered(&folder).unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
