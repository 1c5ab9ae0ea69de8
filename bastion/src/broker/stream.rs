//! One connection of a program of sshd, as the broker sees it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use bastion_core::protocol::{Answer, Ask};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// The longest question in bytes. A claim has at most as many as the API server takes.
const LONGEST: u64 = 4 * 1024 * 1024;

/// Reads a question; none at the end of the connection.
pub(super) async fn question(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Ask>> {
    let mut line = Vec::new();
    let mut limited = from.take(LONGEST);
    limited.read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

/// Writes an answer.
pub(super) async fn answer(
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    answer: &Answer,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    to.write_all(&line).await
}

/// Writes an answer together with a socket (unix(7), `SCM_RIGHTS`).
pub(super) async fn hand_over(
    to: &UnixStream,
    answer: &Answer,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let sent = to.async_io(Interest::WRITABLE, || {
        let sockets = [socket];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&sockets));
        let parts = [IoSlice::new(&line)];
        Ok(sendmsg(
            to.as_fd(),
            &parts,
            &mut control,
            SendFlags::NOSIGNAL,
        )?)
    });
    if sent.await? == line.len() {
        return Ok(());
    }
    Err(io::Error::other("the answer did not fit into the socket"))
}
