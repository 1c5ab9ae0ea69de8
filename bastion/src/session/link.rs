//! A session's questions to the broker, one after the other.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use bastion_core::protocol::{Answer, Ask, Welcome};

use crate::channel::Channel;

/// The broker, which knows this login.
pub(super) struct Link {
    pub(super) channel: Mutex<Channel>,
    /// The folder of the broker's sockets.
    pub(super) run: PathBuf,
    /// The grant, by which ssh's way to workspaces logs in as this session did.
    pub(super) grant: String,
    /// The broker's answer to the login.
    pub(super) welcome: Welcome,
}

impl Link {
    /// Asks the broker.
    pub(super) fn ask(&self, ask: &Ask) -> io::Result<Answer> {
        self.channel()?.ask(ask)
    }

    /// The way to the broker, for more than one question.
    pub(super) fn channel(&self) -> io::Result<MutexGuard<'_, Channel>> {
        self.channel
            .lock()
            .map_err(|_| io::Error::other("the way to the broker is broken"))
    }

    /// Waits until the broker has written something to the audit log.
    pub(super) fn recorded(&self, ask: &Ask) -> io::Result<()> {
        match self.ask(ask)? {
            Answer::Recorded => Ok(()),
            Answer::Refused(problem) => Err(io::Error::other(problem.message)),
            _ => Err(io::Error::other("the broker did not record the command")),
        }
    }
}
