//! A session's way to the broker.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use bastion_core::protocol::{Answer, Ask, LONGEST};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The broker's socket in the folder of a pod.
pub(crate) fn socket(run: &Path) -> PathBuf {
    run.join("broker.sock")
}

/// The socket of the broker as the agent of ssh, in the folder of a pod.
pub(crate) fn agent(run: &Path) -> PathBuf {
    run.join("agent.sock")
}

/// A connection to the broker. Each question has one answer.
pub(crate) struct Channel {
    stream: UnixStream,
    rest: Vec<u8>,
}

impl Channel {
    /// Connects to the broker of a pod.
    pub(crate) fn open(run: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket(run))?;
        Ok(Self {
            stream,
            rest: Vec::new(),
        })
    }

    /// Asks the broker.
    pub(crate) fn ask(&mut self, ask: &Ask) -> io::Result<Answer> {
        self.ask_for(ask).map(|(answer, _)| answer)
    }

    /// Asks the broker for something that comes with a file descriptor.
    pub(crate) fn ask_for(&mut self, ask: &Ask) -> io::Result<(Answer, Option<OwnedFd>)> {
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        self.stream.write_all(&line)?;
        let mut received = None;
        let end = loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                break end;
            }
            received = self.receive()?.or(received);
        };
        let line: Vec<u8> = self.rest.drain(..=end).collect();
        Ok((serde_json::from_slice(&line)?, received))
    }

    /// A second handle, to notice that the broker has closed the connection.
    pub(crate) fn watched(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    fn receive(&mut self) -> io::Result<Option<OwnedFd>> {
        let mut bytes = [0; 16 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let message = recvmsg(
            &self.stream,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        if message.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.rest.len() + message.bytes > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.rest.extend_from_slice(&bytes[..message.bytes]);
        let descriptors = control.drain().filter_map(|one| match one {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        Ok(descriptors.flatten().next())
    }
}
