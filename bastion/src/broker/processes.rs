//! The processes of the pod, by `/proc`. The containers of the pod share their process ids.

use std::io;

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
